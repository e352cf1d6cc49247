"""Cleaning: named steps over documents, each a pure function that is told what it removed.

A line of steps reads `unicode, whitespace, short_lines(words=3)`; they act from left to right.
"""

from __future__ import annotations

import hashlib
import html
import inspect
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from attnlab.errors import DataError, closest

CONTROL = dict.fromkeys(
    [code for code in range(32) if chr(code) not in "\n\t"] + list(range(0x7F, 0xA0)) + [0xAD, 0xFEFF, 0x200B]
)
"""Characters that print nothing and mean nothing here: controls, soft hyphens, byte order marks."""
TAG = re.compile(r"</?(?!(?:unk|eos|bos|pad|mask|start|stop)>)[a-z][^<>\n]{0,200}>|<!--.*?-->", re.S | re.I)
"""HTML, but not the special tokens that corpora of tokens are written with."""
WIKI = re.compile(r"\{\{[^{}]*\}\}|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]|'{2,}|&nbsp;")


@dataclass
class Removed:
    """What one step took away."""

    documents: int = 0
    characters: int = 0

    def note(self, before: str, after: str | None) -> None:
        """Count a document that became another, or nothing."""
        self.documents += after is None
        self.characters += len(before) - len(after or "")


Step = Callable[..., Iterator[str]]


def unicode(documents: Iterable[str], removed: Removed) -> Iterator[str]:
    """Compose characters (NFC), take out controls, and give line ends one form."""
    for document in documents:
        text = document.replace("\r\n", "\n").replace("\r", "\n")
        text = unicodedata.normalize("NFC", text).translate(CONTROL)
        removed.note(document, text)
        yield text


def whitespace(documents: Iterable[str], removed: Removed) -> Iterator[str]:
    """Make every run of white space within a line one space, and drop blank lines and white space at the ends."""
    for document in documents:
        lines = (" ".join(line.split()) for line in document.split("\n"))
        text = "\n".join(line for line in lines if line)
        removed.note(document, text)
        yield text


def markup(documents: Iterable[str], removed: Removed) -> Iterator[str]:
    """Take out HTML tags and comments and what is left of wiki markup, and decode entities."""
    for document in documents:
        text = html.unescape(WIKI.sub(lambda found: found[1] or "", TAG.sub("", document)))
        removed.note(document, text)
        yield text


def short_lines(documents: Iterable[str], removed: Removed, words: int = 3) -> Iterator[str]:
    """Drop lines of fewer words, and documents of which no line is left."""
    for document in documents:
        kept = [line for line in document.split("\n") if len(line.split()) >= words]
        text = "\n".join(kept) if kept else None
        removed.note(document, text)
        if text is not None:
            yield text


def duplicates(documents: Iterable[str], removed: Removed) -> Iterator[str]:
    """Drop documents that came before, letter for letter; some 80 bytes are held for each."""
    seen: set[int] = set()
    for document in documents:
        digest = digest_of(document)
        removed.note(document, None if digest in seen else document)
        if digest not in seen:
            seen.add(digest)
            yield document


def digest_of(text: str) -> int:
    """Return 64 bits of a text's hash: the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


STEPS: Mapping[str, Step] = {step.__name__: step for step in (unicode, whitespace, markup, short_lines, duplicates)}


@dataclass(frozen=True)
class Cleaning:
    """Steps with their arguments, in the order they act."""

    steps: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Cleaning:
        """Read a line of steps with commas between, such as 'unicode, short_lines(words=3)'."""
        parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
        return cls(tuple(_parse_step(part) for part in parts if part))

    def __str__(self) -> str:
        written = []
        for name, arguments in self.steps:
            inner = ", ".join(f"{key}={value}" for key, value in arguments)
            written.append(f"{name}({inner})" if inner else name)
        return ", ".join(written)

    def run(self, documents: Iterable[str]) -> Cleaned:
        """Start cleaning; nothing is read before the documents are taken."""
        cleaned = Cleaned(iter(documents))
        for name, arguments in self.steps:
            removed = Removed()
            cleaned.removed.append((name, removed))
            cleaned.documents = STEPS[name](cleaned.documents, removed, **dict(arguments))
        return cleaned


@dataclass
class Cleaned:
    """Documents on their way through the steps, and what each step has removed so far."""

    documents: Iterator[str]
    removed: list[tuple[str, Removed]] = field(default_factory=list)

    def record(self) -> list[dict[str, Any]]:
        """Return what was removed, as plain data."""
        return [{"step": name, "documents": r.documents, "characters": r.characters} for name, r in self.removed]


def _parse_step(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", text)
    name = match[1] if match else text
    if match is None or name not in STEPS:
        known = closest(name, STEPS) or f"; there are {', '.join(STEPS)}"
        raise DataError(f"no cleaning step is '{name}'{known}")
    allowed = [key for key in inspect.signature(STEPS[name]).parameters if key not in ("documents", "removed")]
    arguments = []
    for part in filter(None, (part.strip() for part in (match[2] or "").split(","))):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in allowed:
            known = closest(key, allowed) or f"; it takes {', '.join(allowed) or 'none'}"
            raise DataError(f"the cleaning step '{name}' has no argument '{key}'{known}")
        if not value.isdigit():
            raise DataError(f"'{key}' of the cleaning step '{name}' needs a whole number, not '{value}'")
        arguments.append((key, int(value)))
    return name, tuple(arguments)
