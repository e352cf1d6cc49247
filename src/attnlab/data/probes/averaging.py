"""Selective averaging: the mean of the marked numbers."""

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, draw_integers, draw_permutations, keys_of
from .probe import Needs, Probe, Tokens


@dataclass(frozen=True)
class Averaging(Probe):
    """Selective averaging: some numbers are marked, and the label of the last token is the mean of those alone.

    Token 0 is the question, 1 … levels are plain numbers, and the next `levels` tokens are the same numbers marked.
    The label is the plain number nearest to the mean; halves are rounded up.
    """

    NAME = "averaging"
    marked: int = 4

    @property
    def levels(self) -> int:
        """How many numbers there are."""
        return (self.vocab - 1) // 2

    def _list_needs(self) -> Needs:
        return [(1 <= self.marked < self.length, f"marked between 1 and {self.length - 1}", "marked")]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, labels = self._blank(keys)
        numbers = draw_integers(keys_of(keys, 0), self.length - 1, self.levels)
        places = draw_permutations(keys_of(keys, 1), self.length - 1)[:, : self.marked]
        chosen = np.take_along_axis(numbers, places, axis=1)
        ids[:, :-1] = 1 + numbers
        np.put_along_axis(ids, places, 1 + self.levels + chosen, axis=1)
        labels[:, -1] = 1 + (2 * chosen.sum(axis=1) + self.marked) // (2 * self.marked)
        return ids, labels
