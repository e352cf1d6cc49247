"""Induction: predict the token that followed the previous occurrence of the current one."""

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, draw_integers, keys_of
from .probe import IGNORED, Probe, Tokens


@dataclass(frozen=True)
class Induction(Probe):
    """Random tokens; a repeated token is labelled with its last successor (Olsson et al. 2022, arXiv:2209.11895).

    Every repetition has a label. The last token always is one, so every row has a label.
    """

    NAME = "induction"

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids = draw_integers(keys_of(keys, 0), self.length, self.vocab)
        repeated = draw_integers(keys_of(keys, 1), 1, self.length - 1)
        ids[:, -1:] = np.take_along_axis(ids, repeated, axis=1)
        rows = np.arange(len(ids))
        labels = np.full(ids.shape, IGNORED, dtype=np.int64)
        last_seen = np.full((len(ids), self.vocab), -1, dtype=np.int64)
        for place in range(self.length):
            previous = last_seen[rows, ids[:, place]]
            labels[:, place] = np.where(previous < 0, IGNORED, ids[rows, previous + 1])
            last_seen[rows, ids[:, place]] = place
        return ids, labels
