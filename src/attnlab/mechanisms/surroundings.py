"""The stages around score, weights and values: shared projections, a cap, the causal mask, dropped tokens, output."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .parameter import Dims, Parameter
from .stage import Params, Slot, Stage, argument, stage


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


@dataclass(frozen=True)
class Output(Stage):
    """Interface of the output stage, and what a report may assume about it.

    changes_output: the call may return something else than its input.
    """

    slot: ClassVar[Slot] = "output"
    traits: ClassVar[tuple[str, ...]] = ("changes_output",)
    changes_output: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        """Return the changed output [b h q d]."""

    def penalty(self, output: Tensor) -> Tensor | None:
        """Return a term for the loss, or None."""
        return None


@stage("gate")
@dataclass(frozen=True)
class Gate(Output):
    """output ⊙ σ(W q), one gate per element or per head (after Qiu et al. 2025, here gated by the query)."""

    per: Literal["element", "head"] = "element"

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        width = dims.value_dim if self.per == "element" else 1
        bound = 1 / math.sqrt(dims.head_dim)
        return {"weight": Parameter((dims.num_heads, width, dims.head_dim), -bound, bound, has_weight_decay=True)}

    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        return output * torch.sigmoid(q @ p["weight"].mT)


@stage("penalize")
@dataclass(frozen=True)
class Penalize(Output):
    """Add strength · mean(output²) to the loss; the output itself is unchanged."""

    changes_output: ClassVar[bool] = False

    what: Literal["output"] = argument("output", shown="positional")
    strength: float = argument(0.01, shown="positional", at_least=0)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("the penalty is a term for the loss: Attention.penalty has it after a call",)

    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        return output

    def penalty(self, output: Tensor) -> Tensor | None:
        return self.strength * output.square().mean()
