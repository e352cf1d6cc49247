"""Text on a terminal, wrapped at words: every line that a verb prints passes through `WrappedStream`.

A terminal cuts a long line in the middle of a word. Lines are wrapped only there: a pipe or a file gets them whole.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

INDENT = "  "
GLUE = "\N{NO-BREAK SPACE}"
"""Stands for a space at which a line is not broken."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LABEL = re.compile(r" *\S+(?: \S+){0,4} {2,}")
"""A label at the start of a line, with two spaces or more between it and its text, which continues below the text."""
COMMAND = re.compile(r" +attnlab ")
"""A command to be copied, which must stay one line."""


class WrappedStream:
    """A terminal whose long lines are wrapped between words."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.is_at_start = stream, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write a text; each line that begins in it is wrapped, except one with control sequences."""
        lines = text.split("\n")
        shown = [line if number == 0 and not self.is_at_start else wrap(line) for number, line in enumerate(lines)]
        if text:
            self.is_at_start = not lines[-1]
        self.stream.write("\n".join(shown))
        return len(text)


def wrap(line: str) -> str:
    """Break a line between words at the width of the terminal; a word that is longer stays whole."""
    width = terminal_width()
    if len(line) <= width or CONTROL.search(line) or COMMAND.match(line):
        return line.replace(GLUE, " ")
    label, indent = LABEL.match(line), len(line) - len(line.lstrip())
    column = label.end() if label and label.end() <= width // 3 else indent or len(INDENT)
    lines = textwrap.wrap(
        line, width, subsequent_indent=" " * column, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False,
    )  # fmt: skip
    return "\n".join(lines).replace(GLUE, " ")


def terminal_width() -> int:
    """Return the number of characters in a line of the terminal."""
    return shutil.get_terminal_size().columns


def unwrapped(stream: Any) -> TextIO:
    """Return the stream below a wrapped one, for text that must not change, such as JSON."""
    return stream.stream if isinstance(stream, WrappedStream) else stream


@contextmanager
def wrap_terminals() -> Iterator[None]:
    """Wrap what is printed on standard output and standard error, each only if it is a terminal."""
    before = sys.stdout, sys.stderr
    streams: list[Any] = [WrappedStream(stream) if stream and stream.isatty() else stream for stream in before]
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
