"""Signs that a text is not what it should be: broken encoding, and punctuation that someone took out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOJIBAKE = re.compile(
    "[\u00c2\u00c3][\u0080-\u00bf]"
    "|\u00e2\u20ac[\u0153\u2122\u02dc\u00a6\u009d\u201c\u201d\u2018\u2019\u2013]"
    "|\u00e2\u0080[\u0090-\u00bf]"
    "|\u00ef\u00bb\u00bf"
)
"""UTF-8 that was read as Latin-1 or Windows-1252, as é becomes Ã© and ’ becomes â€™."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

MARKS = ".,;:!?"
LONG = 8
"""Words that make a line long enough to need a mark: headings and list items do without."""
MOST_BARE = 0.5
"""English prose has a mark in nine long lines of ten; above this share without any, they were taken out."""
ENOUGH = 200
"""Fewer long lines say nothing."""


@dataclass
class Encoding:
    """Documents with broken characters."""

    replaced: int = 0
    """Documents with U+FFFD, which stands for bytes that could not be read."""
    mojibake: int = 0
    first: str = ""
    """Where the first of them is, with what stands there."""

    def look(self, number: int, document: str) -> None:
        """Look at one document."""
        found = None
        if REPLACEMENT in document:
            self.replaced += 1
            found = document.index(REPLACEMENT)
        elif not document.isascii() and (match := MOJIBAKE.search(document)):
            self.mojibake += 1
            found = match.start()
        if found is not None and not self.first:
            self.first = f"document {number}: {document[max(0, found - 20) : found + 20]!r}"


@dataclass
class Punctuation:
    """How many long lines have none of .,;:!? and how often each mark comes."""

    num_long: int = 0
    num_bare: int = 0
    num_words: int = 0
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARKS, 0))

    def look(self, document: str) -> None:
        """Look at one document, line by line."""
        for line in document.split("\n"):
            num_words = len(line.split())
            self.num_words += num_words
            if num_words < LONG:
                continue
            self.num_long += 1
            present = [mark for mark in MARKS if mark in line]
            self.num_bare += not present
            for mark in present:
                self.marks[mark] += line.count(mark)

    @property
    def bare_share(self) -> float:
        """The share of long lines without any mark."""
        return self.num_bare / self.num_long if self.num_long else 0.0

    @property
    def is_stripped(self) -> bool:
        """Whether punctuation seems to have been taken out: all of it, or every full stop or comma."""
        if self.num_long < ENOUGH:
            return False
        return self.bare_share > MOST_BARE or not self.marks["."] or not self.marks[","]
