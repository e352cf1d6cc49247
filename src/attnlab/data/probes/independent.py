"""Tokens that nothing predicts."""

from __future__ import annotations

from dataclasses import dataclass

from ..draws import Keys, below
from .probe import Probe, Tokens


@dataclass(frozen=True)
class Independent(Probe):
    """I.i.d. tokens: each label is the next token, which nothing can predict. A causal model below ln V cheats."""

    NAME = "iid"

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw uniform tokens."""
        ids, labels = self._blank(keys)
        ids[:] = below(keys, self.length, self.vocab)
        labels[:, :-1] = ids[:, 1:]
        return ids, labels
