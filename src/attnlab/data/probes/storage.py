"""Storage, after MAD (Poli et al. 2024, arXiv:2403.17844): facts in the weights, and a whole row in one state."""

from dataclasses import dataclass

from ..draws import Keys, draw_integers, draw_permutations, keys_of, name_key
from .probe import IGNORED, Probe, Tokens

FACTS = name_key("facts to memorize")


@dataclass(frozen=True)
class Memorization(Probe):
    """Keys, each followed by a mark labelled with the key's value; a key has the same value in every row.

    The input does not contain the values, so they must be learned. Facts are the same for all seeds and splits.
    """

    NAME = "memorization"
    vocab: int = 256
    length: int = 32

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        num_facts = (self.vocab - 1) // 2  # the last token is the mark
        values = num_facts + draw_permutations(keys_of(FACTS, self.vocab), self.vocab - 1 - num_facts)[:num_facts]
        ids, labels = self._blank(keys, self.vocab - 1)
        asked = draw_integers(keys, self.length // 2, num_facts)
        ids[:, 0 : 2 * (self.length // 2) : 2] = asked
        labels[:, 1::2] = values[asked]
        return ids, labels


@dataclass(frozen=True)
class Compression(Probe):
    """Random tokens and a mark (the last token), whose state must hold all of them.

    labels[t] is the token at t. The labels must be predicted from the state of the last position alone: the task
    `compression` uses the linear head of a classifier, and MAD an MLP that also receives the position.
    """

    NAME = "compression"
    vocab: int = 16
    length: int = 32

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, _ = self._blank(keys, self.vocab - 1)
        ids[:, :-1] = draw_integers(keys, self.length - 1, self.vocab - 1)
        labels = ids.copy()
        labels[:, -1] = IGNORED
        return ids, labels
