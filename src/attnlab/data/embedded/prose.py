"""CPython's own documentation as a corpus: the topics of `pydoc_data`, about 65,000 words that every Python has.

The text is that of the running Python, so it differs a little from version to version, and so does its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from attnlab.errors import DataError

from ..sources.rows import Row

DEV_SHARE = 10
"""One topic or paragraph in so many is held out, by the hash of its name or text."""
FEWEST_WORDS = 8
"""Of a paragraph; a shorter one is a heading or a line of code."""

MARKS = re.compile(r"[^\w\s]+")
BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Prose:
    """The topics, each one document. punctuation=0 leaves the marks between words out.

    paragraphs=1 makes every paragraph a document, each text once: 79 topics are too few to say anything of others.
    """

    punctuation: int = 1
    paragraphs: int = 0

    @property
    def kind(self) -> str:
        """Documents of English prose."""
        return "prose"

    @property
    def splits(self) -> tuple[str, ...]:
        """What is trained on, and what is held out."""
        return ("train", "dev")

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield each topic, or each of its paragraphs, with its name, in the order of the names."""
        try:
            # Half a megabyte that only this set needs.
            from pydoc_data.topics import topics
        except ImportError as error:
            raise DataError("this Python came without pydoc_data; give a text file instead") from error
        for name, text in paragraphs_of(topics) if self.paragraphs else sorted(topics.items()):
            if split is None or split == split_of(text if self.paragraphs else name):
                yield {"topic": name, "text": text.strip() if self.punctuation else MARKS.sub(" ", text.strip())}


def paragraphs_of(topics: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs of all topics, on one line each and each text once, with the topic's name."""
    seen: set[str] = set()
    for name in sorted(topics):
        for paragraph in BETWEEN_PARAGRAPHS.split(topics[name].strip()):
            words = paragraph.split()
            text = " ".join(words)
            if len(words) >= FEWEST_WORDS and text not in seen:
                seen.add(text)
                yield name, text


def split_of(text: str) -> str:
    """Tell which split a topic's name or a paragraph is in: the same in every version of Python that has it."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return "dev" if number % DEV_SHARE == 0 else "train"
