"""Overlap: how much of one text stands word for word in another, by whole lines and by runs of 13 words.

The smaller text's lines and runs are held as sorted hashes of 8 bytes; the larger one streams past them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..draws import Keys, mix
from ..sources.cleaning import digest_of

RUN = 13
"""Words of a run, as GPT-3's authors took (Brown et al. 2020): so many are hardly ever equal by chance."""
LEAST_LINE = 5
"""Words of a line that is compared: headings recur without saying anything."""
WORD = re.compile(r"\w+")
HEADING = re.compile(r"\s*(=+) .* =+\s*$")
"""A heading of a wiki, however many words it has."""


@dataclass(frozen=True)
class Overlap:
    """What part of a text (held out, say) stands in another (trained on)."""

    num_lines: int
    num_equal_lines: int
    num_runs: int
    num_equal_runs: int

    @property
    def line_share(self) -> float:
        """The share of lines that stand in the other text letter for letter."""
        return self.num_equal_lines / self.num_lines if self.num_lines else 0.0

    @property
    def run_share(self) -> float:
        """The share of runs of 13 words that stand in the other text, whatever their case and punctuation."""
        return self.num_equal_runs / self.num_runs if self.num_runs else 0.0


class Wanted:
    """Hashes of which some may turn up elsewhere."""

    def __init__(self, hashes: Iterable[Keys]) -> None:
        gathered = list(hashes)
        every = np.concatenate(gathered) if gathered else np.zeros(0, dtype=np.uint64)
        self.hashes, self.counts = np.unique(every, return_counts=True)
        self.is_found = np.zeros(self.hashes.size, dtype=np.bool_)

    def look(self, hashes: Keys) -> None:
        """Mark those that are among these."""
        if not self.hashes.size:
            return
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        self.is_found[places[self.hashes[places] == hashes]] = True

    @property
    def num_found(self) -> int:
        """How many were found, those that came more than once counted as often."""
        return int(self.counts[self.is_found].sum())


def find_overlap(held_out: Iterable[str], trained_on: Iterable[str]) -> Overlap:
    """Tell how much of one text stands in another."""
    lines, runs = [], []
    for document in held_out:
        lines.append(hash_lines(document))
        runs.append(hash_runs(document))
    wanted_lines, wanted_runs = Wanted(lines), Wanted(runs)
    for document in trained_on:
        wanted_lines.look(hash_lines(document))
        wanted_runs.look(hash_runs(document))
    return Overlap(
        int(wanted_lines.counts.sum()), wanted_lines.num_found, int(wanted_runs.counts.sum()), wanted_runs.num_found
    )


def hash_lines(document: str) -> Keys:
    """Hash each line of enough words."""
    lines = (line.strip() for line in document.split("\n"))
    return np.array([digest_of(line) for line in lines if says_something(line)], dtype=np.uint64)


def says_something(text: str) -> bool:
    """Tell whether a text is worth comparing: no heading, and of words enough. Marks alone are no words."""
    return HEADING.match(text) is None and len(WORD.findall(text)) >= LEAST_LINE


def hash_runs(document: str) -> Keys:
    """Hash each run of 13 words, lowercased, without what stands between them."""
    # Python's own hash is the fastest there is, and hashes are compared within this process alone.
    words = np.array([hash(word) for word in WORD.findall(document.lower())], dtype=np.int64).astype(np.uint64)
    count = words.size - RUN + 1
    if count < 1:
        return np.zeros(0, dtype=np.uint64)
    total: NDArray[np.uint64] = np.zeros(count, dtype=np.uint64)
    for place in range(RUN):
        total = mix(total ^ words[place : place + count])
    return total
