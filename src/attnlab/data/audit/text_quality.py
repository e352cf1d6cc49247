"""Signs of a damaged text: broken encoding, and removed punctuation."""

import re
from dataclasses import dataclass, field

MOJIBAKE = re.compile(
    "[\u00c2\u00c3][\u0080-\u00bf]"
    "|\u00e2\u20ac[\u0153\u2122\u02dc\u00a6\u009d\u201c\u201d\u2018\u2019\u2013]"
    "|\u00e2\u0080[\u0090-\u00bf]"
    "|\u00ef\u00bb\u00bf"
)
"""UTF-8 decoded as Latin-1 or Windows-1252: é becomes Ã© and ’ becomes â€™."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

MARKS = ".,;:!?"
LONG = 8
"""Words from which on a line is expected to have a punctuation mark; headings and list items often have none."""
MAX_BARE = 0.5
"""Nine of ten long lines of English prose have a mark; above this share without any, punctuation was removed."""
ENOUGH = 200
"""Long lines needed for a conclusion."""


@dataclass
class Encoding:
    """Counts of documents with broken characters."""

    replaced: int = 0
    """Documents with U+FFFD, the replacement of bytes that could not be decoded."""
    mojibake: int = 0
    first: str = ""
    """The first of them, with an excerpt."""

    def add(self, number: int, document: str) -> None:
        """Check one document."""
        place = document.find(REPLACEMENT)
        if place >= 0:
            self.replaced += 1
        elif not document.isascii() and (match := MOJIBAKE.search(document)):
            self.mojibake += 1
            place = match.start()
        if place >= 0 and not self.first:
            self.first = f"document {number}: {document[max(0, place - 20) : place + 20]!r}"


@dataclass
class Punctuation:
    """Counts of long lines, of those without any of .,;:!? and of each mark."""

    num_long: int = 0
    num_bare: int = 0
    num_words: int = 0
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARKS, 0))

    def add(self, document: str) -> None:
        """Count the lines of one document."""
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
        """Whether punctuation seems to have been removed: most of it, or every full stop or comma."""
        if self.num_long < ENOUGH:
            return False
        return self.bare_share > MAX_BARE or not self.marks["."] or not self.marks[","]
