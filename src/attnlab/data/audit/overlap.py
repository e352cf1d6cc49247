"""Overlap: how much of one text also occurs in another, by whole lines and by sequences of 13 words.

The lines and sequences of the smaller text are kept as sorted hashes of 8 bytes; the larger text is streamed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..draws import Keys, mix
from ..sources.cleaning import digest_of

RUN = 13
"""Words of a sequence, as in GPT-3 (Brown et al. 2020): sequences of this length are rarely equal by chance."""
LEAST_LINE = 5
"""Words of a line that is compared: shorter ones, such as headings, recur without being copies."""
WORD = re.compile(r"\w+")
HEADING = re.compile(r"\s*(=+) .* =+\s*$")
"""A heading of a wiki, of any number of words."""


@dataclass(frozen=True)
class Overlap:
    """How much of one text (held out, for example) also occurs in another (the training text)."""

    num_lines: int
    num_equal_lines: int
    num_runs: int
    num_equal_runs: int

    @property
    def line_share(self) -> float:
        """The share of lines that are identical in the other text."""
        return self.num_equal_lines / self.num_lines if self.num_lines else 0.0

    @property
    def run_share(self) -> float:
        """The share of sequences of 13 words that occur in the other text, ignoring case and punctuation."""
        return self.num_equal_runs / self.num_runs if self.num_runs else 0.0


class HashMatches:
    """A set of hashes, and which of them occurred elsewhere."""

    def __init__(self, hashes: Iterable[Keys]) -> None:
        every = np.concatenate([np.zeros(0, dtype=np.uint64), *hashes])
        self.hashes, self.counts = np.unique(every, return_counts=True)
        self.is_found = np.zeros(self.hashes.size, dtype=np.bool_)

    def mark(self, hashes: Keys) -> None:
        """Mark the hashes of the set that are among these."""
        if not self.hashes.size:
            return
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        self.is_found[places[self.hashes[places] == hashes]] = True

    @property
    def num_found(self) -> int:
        """How many occurred elsewhere; a hash that was given several times counts as often."""
        return int(self.counts[self.is_found].sum())


def find_overlap(held_out: Iterable[str], trained_on: Iterable[str]) -> Overlap:
    """Count how much of one text occurs in another."""
    hashes = [(_hash_lines(document), _hash_runs(document)) for document in held_out]
    lines, runs = (HashMatches(pair[part] for pair in hashes) for part in (0, 1))
    for document in trained_on:
        lines.mark(_hash_lines(document))
        runs.mark(_hash_runs(document))
    return Overlap(int(lines.counts.sum()), lines.num_found, int(runs.counts.sum()), runs.num_found)


def is_comparable(text: str) -> bool:
    """Return whether a text is worth comparing: not a heading, and of enough words, not counting marks."""
    return HEADING.match(text) is None and len(WORD.findall(text)) >= LEAST_LINE


def _hash_lines(document: str) -> Keys:
    lines = (line.strip() for line in document.split("\n"))
    return np.array([digest_of(line) for line in lines if is_comparable(line)], dtype=np.uint64)


def _hash_runs(document: str) -> Keys:
    # Python's built-in hash is the fastest, and these hashes are only compared within this process.
    words = np.array([hash(word) for word in WORD.findall(document.lower())], dtype=np.int64).astype(np.uint64)
    count = max(words.size - RUN + 1, 0)
    total: Keys = np.zeros(count, dtype=np.uint64)
    for place in range(RUN):
        total = mix(total ^ words[place : place + count])
    return total
