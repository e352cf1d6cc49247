"""Induction: say what followed when this token came before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, below, keys_of
from .probe import IGNORED, Probe, Tokens


@dataclass(frozen=True)
class Induction(Probe):
    """Random tokens; at each that stood before, say what followed it last time (Olsson et al. 2022, arXiv:2209.11895).

    Every repetition has a label. The last token always is one, so that something is asked of every row.
    """

    NAME = "induction"

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw tokens, repeat one of them at the end, and label every repetition."""
        ids = below(keys_of(keys, 0), self.length, self.vocab)
        repeated = below(keys_of(keys, 1), 1, self.length - 1)
        ids[:, -1:] = np.take_along_axis(ids, repeated, axis=1)
        rows = np.arange(len(ids))
        labels = np.full(ids.shape, IGNORED, dtype=np.int64)
        last_seen = np.full((len(ids), self.vocab), -1, dtype=np.int64)
        for place in range(self.length):
            before = last_seen[rows, ids[:, place]]
            labels[:, place] = np.where(before < 0, IGNORED, ids[rows, before + 1])
            last_seen[rows, ids[:, place]] = place
        return ids, labels
