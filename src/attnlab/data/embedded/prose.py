"""CPython's documentation as a corpus: the topics of `pydoc_data`, about 65,000 words included in every Python.

The text, and so its hash, differs slightly between versions of Python.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from attnlab.errors import DataError

from ..row import Row

DEV_SHARE = 10
"""One topic or paragraph in this many is held out, by the hash of its name or text."""
MIN_WORDS = 8
"""Minimum of a paragraph; shorter ones are headings or lines of code."""

MARKS = re.compile(r"[^\w\s]+")
BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Prose:
    """The topics, one document each. punctuation=0 removes punctuation.

    paragraphs=1 makes every distinct paragraph a document, since 79 topics are too few to generalize from.
    """

    kind: ClassVar[str] = "prose"
    splits: ClassVar[tuple[str, ...]] = ("train", "dev")

    punctuation: int = 1
    paragraphs: int = 0

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield each topic, or each of its paragraphs, with the topic's name, in the order of the names."""
        try:
            # Imported here, since only this set needs half a megabyte of text.
            from pydoc_data.topics import topics
        except ImportError as error:
            raise DataError("this Python has no pydoc_data; use a text file instead") from error
        for name, text in _list_paragraphs(topics) if self.paragraphs else sorted(topics.items()):
            key = hashlib.sha256((text if self.paragraphs else name).encode()).digest()
            is_held_out = int.from_bytes(key[:4], "big") % DEV_SHARE == 0
            if split is None or (split == "dev") == is_held_out:
                yield {"topic": name, "text": text.strip() if self.punctuation else MARKS.sub(" ", text.strip())}


def _list_paragraphs(topics: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the topic's name and the text of each distinct paragraph, on one line."""
    seen: set[str] = set()
    for name in sorted(topics):
        for paragraph in BETWEEN_PARAGRAPHS.split(topics[name].strip()):
            words = paragraph.split()
            text = " ".join(words)
            if len(words) >= MIN_WORDS and text not in seen:
                seen.add(text)
                yield name, text
