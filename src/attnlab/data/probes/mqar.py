"""MQAR: recall of many key-value pairs, as the generator of zoology makes it (Arora et al. 2023, arXiv:2312.04927)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, below, distinct, keys_of, weighted
from .probe import Probe, Tokens


@dataclass(frozen=True)
class Recall(Probe):
    """Pairs of a key and a value, then each key once more, at which its value is asked for.

    Keys are drawn without replacement from 1 … vocab/2 − 1, values without replacement from vocab/2 … vocab − 1.
    Behind the pairs every second place may hold a query; the i-th of these is drawn for a key with a chance in
    proportion to i^(power − 1), one key after another, so that most repetitions come soon, as in text. Every place
    that is still empty holds a random token of the whole vocabulary.
    """

    NAME = "mqar"
    pairs: int = 4
    power: float = 0.01
    """The exponent of the power law of gaps; 1 draws all places alike."""
    filler: int = 1
    """1 fills empty places with random tokens, 0 with token 0."""

    @property
    def num_keys(self) -> int:
        """How many tokens can be keys: token 0 is none."""
        return self.vocab // 2 - 1

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for a key and two pairs of places for each pair."""
        most = self.num_keys
        return [
            (1 <= self.pairs <= most, f"pairs between 1 and {most}, as there are {most} keys", "pairs"),
            (4 * self.pairs <= self.length, f"a length of at least 4·pairs = {4 * self.pairs}", "length"),
            (self.power > 0, "a power above 0", "power"),
            (self.filler in (0, 1), "a filler of 0 or 1", "filler"),
        ]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Write the pairs, then each key once more."""
        ids, labels = self._blank(keys)
        told = 2 * self.pairs
        if self.filler:
            ids[:] = below(keys_of(keys, 3), self.length, self.vocab)
        asked = 1 + distinct(keys_of(keys, 0), self.pairs, self.num_keys)
        values = self.vocab // 2 + distinct(keys_of(keys, 1), self.pairs, self.vocab - self.vocab // 2)
        ids[:, 0:told:2], ids[:, 1:told:2] = asked, values
        gaps = np.arange(1, (self.length - told) // 2 + 1, dtype=np.float64)
        places = told + 2 * weighted(keys_of(keys, 2), self.pairs, gaps ** (self.power - 1))
        np.put_along_axis(ids, places, asked, axis=1)
        np.put_along_axis(labels, places, values, axis=1)
        return ids, labels
