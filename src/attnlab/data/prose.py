"""CPython's own documentation as a corpus: the topics of `pydoc_data`, about 65,000 words that every Python has.

The text is that of the running Python, so it differs a little from version to version, and so does its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from attnlab.errors import DataError

from .rows import Row

DEV_SHARE = 10
"""One topic in so many is held out, by the hash of its name."""

MARKS = re.compile(r"[^\w\s]+")


@dataclass(frozen=True)
class Prose:
    """The topics, each one document. punctuation=0 leaves the marks between words out."""

    punctuation: int = 1

    @property
    def kind(self) -> str:
        """Documents of English prose."""
        return "prose"

    @property
    def splits(self) -> tuple[str, ...]:
        """The topics that are trained on, and those held out."""
        return ("train", "dev")

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield each topic with its name, in the order of the names."""
        try:
            # Half a megabyte that only this set needs.
            from pydoc_data.topics import topics
        except ImportError as error:
            raise DataError("this Python came without pydoc_data; give a text file instead") from error
        for name in sorted(topics):
            if split is None or split == split_of(name):
                text = topics[name].strip()
                yield {"topic": name, "text": text if self.punctuation else MARKS.sub(" ", text)}


def split_of(topic: str) -> str:
    """Tell which split a topic is in: the same in every version of Python that has it."""
    number = int.from_bytes(hashlib.sha256(topic.encode()).digest()[:4], "big")
    return "dev" if number % DEV_SHARE == 0 else "train"
