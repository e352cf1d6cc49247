"""MQAR: recall of many key-value pairs, generated as in zoology (Arora et al. 2023, arXiv:2312.04927)."""

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, draw_distinct, draw_integers, draw_weighted, keys_of
from .probe import Needs, Probe, Tokens


@dataclass(frozen=True)
class Recall(Probe):
    """Pairs of a key and a value, then each key once more, labelled with its value.

    Keys are drawn without replacement from 1 … vocab/2 − 1, values without replacement from vocab/2 … vocab − 1. After
    the pairs every second position may hold a query; keys are placed one after another, at the i-th of these with a
    probability proportional to i^(power − 1), so most repetitions come soon, as in text. All other positions hold
    random tokens of the whole vocabulary.
    """

    NAME = "mqar"
    pairs: int = 4
    power: float = 0.01
    """The exponent of the power law of gaps; 1 makes all positions equally likely."""
    filler: int = 1
    """1 fills empty positions with random tokens, 0 with token 0."""

    @property
    def num_keys(self) -> int:
        """How many tokens can be keys; token 0 cannot."""
        return self.vocab // 2 - 1

    def _list_needs(self) -> Needs:
        most = self.num_keys
        return [
            (1 <= self.pairs <= most, f"pairs between 1 and {most}, as there are {most} keys", "pairs"),
            (4 * self.pairs <= self.length, f"a length of at least 4·pairs = {4 * self.pairs}", "length"),
            (self.power > 0, "a power above 0", "power"),
            (self.filler in (0, 1), "a filler of 0 or 1", "filler"),
        ]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, labels = self._blank(keys)
        end = 2 * self.pairs
        if self.filler:
            ids[:] = draw_integers(keys_of(keys, 3), self.length, self.vocab)
        pair_keys = 1 + draw_distinct(keys_of(keys, 0), self.pairs, self.num_keys)
        values = self.vocab // 2 + draw_distinct(keys_of(keys, 1), self.pairs, self.vocab - self.vocab // 2)
        ids[:, 0:end:2], ids[:, 1:end:2] = pair_keys, values
        gaps = np.arange(1, (self.length - end) // 2 + 1, dtype=np.float64)
        places = end + 2 * draw_weighted(keys_of(keys, 2), self.pairs, gaps ** (self.power - 1))
        np.put_along_axis(ids, places, pair_keys, axis=1)
        np.put_along_axis(labels, places, values, axis=1)
        return ids, labels
