"""The stages around score, weights and values: shared projections, a cap, the causal mask, dropped tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .stage import Slot, Stage, argument, stage


@stage("share")
@dataclass(frozen=True)
class SharedProjections(Stage):
    """Projections that share weights: qk, kv or qkv. Acts on a model's projections, not on q, k and v."""

    slot: ClassVar[Slot] = "share"

    what: Literal["separate", "qk", "kv", "qkv"] = argument("separate", shown="positional")

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.what == "separate" else (f"'{self}' ties a model's projections; q, k and v are unchanged",)


@stage("cap")
@dataclass(frozen=True)
class Cap(Stage):
    """limit·tanh(s_ij/limit): scores stay between −limit and limit (as in Gemma 2)."""

    slot: ClassVar[Slot] = "cap"

    limit: float = argument(50.0, shown="positional", at_least=1e-3)

    @property
    def replaces(self) -> Mapping[str, str | None]:
        return {"cap": None}

    def __call__(self, scores: Tensor) -> Tensor:
        """Return the capped scores [b h q k]."""
        return self.limit * torch.tanh(scores / self.limit)


@stage("mask")
@dataclass(frozen=True)
class CausalMask(Stage):
    """Where the causal mask is applied.

    before: forbidden pairs are left out of the weights. after: their weights are set to 0, without renormalising.
    zero: their scores are set to 0.
    """

    slot: ClassVar[Slot] = "causal"

    where: Literal["before", "after", "zero"] = argument("before", shown="positional")


@stage("token_dropout")
@dataclass(frozen=True)
class TokenDropout(Stage):
    """During training, each key is dropped with probability p, for all queries and heads of its sequence."""

    slot: ClassVar[Slot] = "drop"

    p: float = argument(0.1, shown="positional", at_least=0, below=1)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"'{self}' acts only with training=True",)

    def draw_kept_keys(self, batch: int, num_keys: int, generator: torch.Generator) -> Tensor:
        """Draw the keys that are not dropped, [b 1 1 k]."""
        return torch.rand(batch, 1, 1, num_keys, generator=generator) >= self.p
