"""State tracking: every token changes a state, and the label of every position is the state so far.

Parity is the regular language that transformers are known to struggle with (Hahn 2020, arXiv:1906.06755); the word
problem of the permutations of five is one that models of constant depth cannot solve for all lengths if TC⁰ ≠ NC¹
(Barrington 1989; Merrill et al. 2024, arXiv:2404.08819).
"""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..draws import Keys, draw_integers
from .probe import Needs, Probe, Tokens


@dataclass(frozen=True)
class Parity(Probe):
    """Tokens 0 and 1, each labelled with whether the number of ones so far is odd."""

    NAME = "parity"
    vocab: int = 4

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids = draw_integers(keys, self.length, 2)
        return ids, np.cumsum(ids, axis=1) % 2


@dataclass(frozen=True)
class Permutations(Probe):
    """The 120 permutations of five elements, in lexicographic order, each labelled with the product so far.

    The product applies the earlier permutation first: (p·q)[i] = q[p[i]].
    """

    NAME = "permutations"
    vocab: int = 120

    def _list_needs(self) -> Needs:
        return [(self.vocab >= 120, "a vocab of at least 120, a token for every permutation of five", "vocab")]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids = draw_integers(keys, self.length, 120)
        labels = ids.copy()
        for place in range(1, self.length):
            labels[:, place] = multiply_permutations()[labels[:, place - 1], ids[:, place]]
        return ids, labels


@cache
def multiply_permutations() -> Tokens:
    """Return the number of the product of every two permutations of five: [120, 120]."""
    permutations = np.array(list(itertools.permutations(range(5))))
    numbers = {tuple(permutation): number for number, permutation in enumerate(permutations.tolist())}
    return np.array([[numbers[tuple(second[first].tolist())] for second in permutations] for first in permutations])
