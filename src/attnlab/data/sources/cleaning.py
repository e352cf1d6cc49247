"""Cleaning: a sequence of named steps over documents, each a pure function, with counts of what it removed.

A line of steps reads `unicode, whitespace, short_lines(words=3)`; they run from left to right.
"""

import hashlib
import html
import inspect
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from attnlab.errors import DataError, closest
from attnlab.inputs import is_whole_number

CONTROL = dict.fromkeys(
    [code for code in range(32) if chr(code) not in "\n\t"] + list(range(0x7F, 0xA0)) + [0xAD, 0xFEFF, 0x200B]
)
"""Invisible characters without meaning: controls, soft hyphens, byte order marks."""
TAG = re.compile(r"</?(?!(?:unk|eos|bos|pad|mask|start|stop)>)[a-z][^<>\n]{0,200}>|<!--.*?-->", re.S | re.I)
"""HTML tags and comments, but not special tokens, which some corpora contain."""
WIKI = re.compile(r"\{\{[^{}]*\}\}|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|'{2,}|&nbsp;")


Step = Callable[..., str | None]
"""Returns the cleaned document, or None to drop it."""


def unicode(document: str) -> str:
    """Compose characters (NFC), remove controls, and normalize line ends."""
    text = document.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", text).translate(CONTROL)


def whitespace(document: str) -> str:
    """Replace every run of white space within a line by one space, and remove blank lines and outer white space."""
    lines = (" ".join(line.split()) for line in document.split("\n"))
    return "\n".join(line for line in lines if line)


def markup(document: str) -> str:
    """Remove HTML tags, comments and remains of wiki markup, and decode entities."""
    return html.unescape(WIKI.sub(lambda match: match[1] or "", TAG.sub("", document)))


def short_lines(document: str, words: int = 3) -> str | None:
    """Drop lines of fewer words, and documents without any line left."""
    lines = [line for line in document.split("\n") if len(line.split()) >= words]
    return "\n".join(lines) if lines else None


def duplicates(document: str, seen: set[int]) -> str | None:
    """Drop documents identical to an earlier one; `seen` takes about 80 bytes per document."""
    digest = digest_of(document)
    if digest in seen:
        return None
    seen.add(digest)
    return document


def digest_of(text: str) -> int:
    """Return 64 bits of a text's hash, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


STEPS: Mapping[str, Step] = {step.__name__: step for step in (unicode, whitespace, markup, short_lines, duplicates)}


@dataclass(frozen=True)
class Cleaning:
    """Steps with their arguments, in order."""

    steps: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a comma-separated line of steps, such as 'unicode, short_lines(words=3)'."""
        parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
        return cls(tuple(_parse_step(part) for part in parts if part))

    def __str__(self) -> str:
        written = []
        for name, arguments in self.steps:
            inner = ", ".join(f"{key}={value}" for key, value in arguments)
            written.append(f"{name}({inner})" if inner else name)
        return ", ".join(written)

    def run(self, documents: Iterable[str]) -> tuple[Iterator[str], list[dict[str, Any]]]:
        """Return an iterator of cleaned documents, and what each step removed, counted as the iterator advances."""
        cleaned, records = iter(documents), list[dict[str, Any]]()
        for name, arguments in self.steps:
            step = partial(STEPS[name], **dict(arguments))
            if name == duplicates.__name__:
                step = partial(step, seen=set())
            records.append({"step": name, "documents": 0, "characters": 0})
            cleaned = _apply(step, cleaned, records[-1])
        return cleaned, records


def _apply(step: Step, documents: Iterator[str], removed: dict[str, Any]) -> Iterator[str]:
    for document in documents:
        text = step(document)
        removed["documents"] += text is None
        removed["characters"] += len(document) - len(text or "")
        if text is not None:
            yield text


def _parse_step(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", text)
    name = match[1] if match else text
    if match is None or name not in STEPS:
        hint = closest(name, STEPS) or f"; there are {', '.join(STEPS)}"
        raise DataError(f"no cleaning step is named '{name}'{hint}")
    allowed = [key for key in inspect.signature(STEPS[name]).parameters if key not in ("document", "seen")]
    arguments = []
    for part in filter(None, (part.strip() for part in (match[2] or "").split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in allowed:
            hint = closest(key, allowed) or f"; it takes {', '.join(allowed) or 'none'}"
            raise DataError(f"the cleaning step '{name}' has no argument '{key}'{hint}")
        if not is_whole_number(value):
            raise DataError(f"'{key}' of the cleaning step '{name}' needs a whole number, not '{value}'")
        arguments.append((key, int(value)))
    return name, tuple(arguments)
