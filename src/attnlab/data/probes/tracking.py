"""State tracking: every token changes a state, and every position asks for the state so far.

No answer stands in the input. Parity is the regular language that transformers are known to struggle with (Hahn 2020,
arXiv:1906.06755); the word problem of the permutations of five is the one that models of constant depth cannot solve
for all lengths if TC⁰ ≠ NC¹ (Barrington 1989; Merrill et al. 2024, arXiv:2404.08819).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..draws import Keys, below
from .probe import Probe, Tokens


@dataclass(frozen=True)
class Parity(Probe):
    """Tokens 0 and 1; at each, whether the number of ones up to it is odd."""

    NAME = "parity"
    vocab: int = 4

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw bits, and label each with the parity so far."""
        ids = below(keys, self.length, 2)
        return ids, np.cumsum(ids, axis=1) % 2


@dataclass(frozen=True)
class Permutations(Probe):
    """The 120 permutations of five things, in the order of the alphabet; at each, the product of all up to it.

    The product applies the earlier permutation first: (p·q)[i] = q[p[i]].
    """

    NAME = "permutations"
    vocab: int = 120

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for a token for every permutation."""
        return [(self.vocab >= 120, "a vocab of at least 120, a token for every permutation of five", "vocab")]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw permutations, and label each with the product so far."""
        ids = below(keys, self.length, 120)
        labels = ids.copy()
        for place in range(1, self.length):
            labels[:, place] = products()[labels[:, place - 1], ids[:, place]]
        return ids, labels


@cache
def products() -> Tokens:
    """Return the number of the product of every two permutations of five: [120, 120]."""
    every = np.array(list(itertools.permutations(range(5))))
    number = {tuple(one): at for at, one in enumerate(every.tolist())}
    return np.array([[number[tuple(second[first].tolist())] for second in every] for first in every])
