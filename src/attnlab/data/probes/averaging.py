"""Selective averaging: the mean of the numbers that are marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, below, keys_of, permutations
from .probe import Probe, Tokens


@dataclass(frozen=True)
class Averaging(Probe):
    """Selective averaging: some numbers are marked; the last token asks for the mean of those alone.

    Token 0 asks; 1 … levels are plain numbers, the next `levels` tokens the same numbers marked. The label is the
    plain number nearest to the mean, half-way ones upwards.
    """

    NAME = "averaging"
    marked: int = 4

    @property
    def levels(self) -> int:
        """How many numbers there are."""
        return (self.vocab - 1) // 2

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for a place for each marked number."""
        return [(1 <= self.marked < self.length, f"marked between 1 and {self.length - 1}", "marked")]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Write numbers, mark some, and ask."""
        ids, labels = self._blank(keys)
        numbers = below(keys_of(keys, 0), self.length - 1, self.levels)
        places = permutations(keys_of(keys, 1), self.length - 1)[:, : self.marked]
        chosen = np.take_along_axis(numbers, places, axis=1)
        ids[:, :-1] = 1 + numbers
        np.put_along_axis(ids, places, 1 + self.levels + chosen, axis=1)
        labels[:, -1] = 1 + (2 * chosen.sum(axis=1) + self.marked) // (2 * self.marked)
        return ids, labels
