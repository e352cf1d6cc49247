"""What a model stores, after MAD (Poli et al. 2024, arXiv:2403.17844): facts in its weights, a row in one vector."""

from __future__ import annotations

from dataclasses import dataclass

from ..draws import Keys, below, keys_of, name_key, permutations
from .probe import IGNORED, Probe, Tokens

FACTS = name_key("facts to memorize")


@dataclass(frozen=True)
class Memorization(Probe):
    """Keys, each followed by a mark at which its value is asked for; the value of a key is the same in every row.

    Nothing in a row tells the value, so it must be learned. Facts are the same for all seeds and splits.
    """

    NAME = "memorization"
    vocab: int = 256
    length: int = 32

    @property
    def num_keys(self) -> int:
        """How many facts there are; the last token is the mark."""
        return (self.vocab - 1) // 2

    @property
    def facts(self) -> Tokens:
        """The value of each key, no two the same."""
        num_values = self.vocab - 1 - self.num_keys
        return self.num_keys + permutations(keys_of(FACTS, self.vocab), num_values)[: self.num_keys]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw keys, and ask for the value of each."""
        ids, labels = self._blank(keys, self.vocab - 1)
        asked = below(keys, self.length // 2, self.num_keys)
        ids[:, 0 : 2 * (self.length // 2) : 2] = asked
        labels[:, 1::2] = self.facts[asked]
        return ids, labels


@dataclass(frozen=True)
class Compression(Probe):
    """Random tokens and a mark (the last token), whose state alone must hold all of them.

    labels[t] is the token at t. They are to be read from the state of the last position and from nothing else: the
    task `compression` does so with the linear head of a classifier, where MAD has an MLP that is told the position.
    """

    NAME = "compression"
    vocab: int = 16
    length: int = 32

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw tokens, and ask for all of them."""
        ids, _ = self._blank(keys, self.vocab - 1)
        ids[:, :-1] = below(keys, self.length - 1, self.vocab - 1)
        labels = ids.copy()
        labels[:, -1] = IGNORED
        return ids, labels
