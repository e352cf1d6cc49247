"""Control characters and bidirectional overrides of names and data, made visible wherever text is shown.

A terminal obeys control characters, and an override shows text in another order than it has. Each becomes its escape,
such as \\u001b, which in JSON means the character itself.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed; marks, embeddings, overrides and isolates of direction; halves of pairs."""


def make_visible(text: str) -> str:
    """Return a text with the escapes of the characters that are not shown as themselves."""
    return HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def make_values_visible(value: Any) -> Any:
    """Return plain data with every text in it made visible."""
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, dict):
        return {make_visible(key) if isinstance(key, str) else key: make_values_visible(value[key]) for key in value}
    return [make_values_visible(item) for item in value] if isinstance(value, list | tuple) else value


def make_output_visible(value: Any) -> Any:
    """Make a text of a page visible, as the `finalize` of a Jinja environment; markup is ours and stays as it is."""
    return make_visible(value) if type(value) is str else value


class VisibleStream:
    """A text stream that makes all it is given visible. `unfiltered` is the stream itself, for a progress display.

    A carriage return at the start of a line, with which progress bars of other libraries redraw it, passes.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream
        self._is_redrawn = True

    def write(self, text: str) -> int:
        """Write a text."""
        is_bar = self._is_redrawn and text.startswith("\r")
        self.unfiltered.write(f"\r{make_visible(text[1:])}" if is_bar else make_visible(text))
        self._is_redrawn = is_bar or text.endswith("\n") or (self._is_redrawn and not text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def get_unfiltered_stream(stream: TextIO) -> TextIO:
    """Return the stream below a VisibleStream, for output that is made of control characters, such as a bar."""
    unfiltered: TextIO = getattr(stream, "unfiltered", stream)
    return unfiltered


@contextmanager
def print_visibly() -> Iterator[None]:
    """Make everything visible that is printed to standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = VisibleStream(before[0]), VisibleStream(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
