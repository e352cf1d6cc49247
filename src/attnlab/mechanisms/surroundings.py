"""The stages around score, weights and values: shared projections, causal mask, dropped tokens, output."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .stage import Dims, Parameter, Params, Slot, Stage, argument, stage


@stage("share")
@dataclass(frozen=True)
class Share(Stage):
    """Which projections are one: qk or qkv. It ties a model's weights; q, k and v come in as they are."""

    slot: ClassVar[Slot] = "share"

    what: Literal["separate", "qk", "qkv"] = argument("separate", shown="positional")

    @property
    def notes(self) -> tuple[str, ...]:
        if self.what == "separate":
            return ()
        return (f"'{self}' ties a model's projections; q, k and v are taken as they come",)


@stage("mask")
@dataclass(frozen=True)
class Mask(Stage):
    """Where a pair that causality forbids vanishes.

    before: left out of the weights. after: 0 after them, not renormalised. zero: score 0 before them.
    """

    slot: ClassVar[Slot] = "mask"

    where: Literal["before", "after", "zero"] = argument("before", shown="positional")


@stage("token_dropout")
@dataclass(frozen=True)
class TokenDropout(Stage):
    """While training, each key vanishes with probability p, for all queries and heads of its sequence."""

    slot: ClassVar[Slot] = "drop"

    p: float = argument(0.1, shown="positional", at_least=0, below=1)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"'{self}' acts where training=True",)

    def kept(self, batch: int, num_keys: int, generator: torch.Generator) -> Tensor:
        """Draw which keys stay, [b 1 1 k]."""
        return torch.rand(batch, 1, 1, num_keys, generator=generator) >= self.p


@dataclass(frozen=True)
class Output(Stage):
    """Interface of the output stage."""

    slot: ClassVar[Slot] = "output"

    @abstractmethod
    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        """Return the changed output [b h q d]."""

    def penalty(self, output: Tensor) -> Tensor | None:
        """Return a term for the loss, or None."""
        return None


@stage("gate")
@dataclass(frozen=True)
class Gate(Output):
    """output ⊙ σ(W q), one gate an element or one a head (after Qiu et al. 2025, here gated by the query)."""

    per: Literal["element", "head"] = "element"

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        width = dims.value_dim if self.per == "element" else 1
        bound = 1 / math.sqrt(dims.head_dim)
        return {"weight": Parameter((dims.num_heads, width, dims.head_dim), -bound, bound, decays=True)}

    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        return output * torch.sigmoid(q @ p["weight"].mT)


@stage("penalize")
@dataclass(frozen=True)
class Penalize(Output):
    """Add strength · mean(output²) to the loss; the output itself is unchanged."""

    what: Literal["output"] = argument("output", shown="positional")
    strength: float = argument(0.01, shown="positional", at_least=0)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("the penalty is a term for the loss: Attention.penalty holds it after a call",)

    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        return output

    def penalty(self, output: Tensor) -> Tensor | None:
        return self.strength * output.square().mean()
