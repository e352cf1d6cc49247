"""heads(kv=N): the number of key and value heads of a model (grouped-query and multi-query attention)."""

from dataclasses import dataclass
from typing import ClassVar

from .stage import Slot, Stage, argument, stage


@stage("heads")
@dataclass(frozen=True)
class KeyHeads(Stage):
    """N heads of keys and values, each used by a group of query heads (Ainslie et al. 2023); acts in a model only."""

    slot: ClassVar[Slot] = "kv_heads"

    kv: int = argument(shown="keyword", at_least=1)

    @property
    def notes(self) -> tuple[str, ...]:
        """The heads of a call are those of its tensors."""
        return (f"'{self}' narrows a model's projections; k and v come with their heads already",)
