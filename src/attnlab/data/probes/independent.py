"""Independent tokens, which cannot be predicted."""

from dataclasses import dataclass

from ..draws import Keys, draw_integers
from .probe import Probe, Tokens


@dataclass(frozen=True)
class Independent(Probe):
    """I.i.d. uniform tokens, each labelled with the next: a causal model with a loss below ln V sees the future."""

    NAME = "iid"

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, labels = self._blank(keys)
        ids[:] = draw_integers(keys, self.length, self.vocab)
        labels[:, :-1] = ids[:, 1:]
        return ids, labels
