"""What the weights mix: changes on the path of the values (or queries, or keys) before the scores are taken.

A stage sees t, the projected tensor it changes; x, the layer's input at the same positions, split by heads
like t; and first, the values of the first layer. [b h k d] each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from .arguments import Layers
from .scores import per_head, unit
from .stage import Dims, Parameter, Params, Slot, Stage, argument, stage

Target = Literal["v", "q", "k"]


@dataclass(frozen=True)
class Value(Stage):
    """Interface of the values stage."""

    slot: ClassVar[Slot] = "values"

    @property
    def target(self) -> Target:
        """The tensor the stage changes."""
        return "v"

    @abstractmethod
    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        """Return the changed tensor, of the shape of t."""


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "identity": lambda x: x,
    "abs": torch.abs,
}


@stage("bypass")
@dataclass(frozen=True)
class Bypass(Value):
    """V' = V + α·activation(x): the layer's input reaches the values past the projection.

    `input=norm` normalises x over its whole width first. `per`, `schedule` and `layers` say how α is shared,
    how it moves while training, and where it acts; they matter in a model, not in a single attention.
    """

    alpha: float = argument(0.5, shown="keyword")
    on: Target = "v"
    activation: Literal["relu", "gelu", "silu", "identity", "abs"] = "relu"
    input: Literal["raw", "norm"] = "raw"
    learn: bool = False
    per: Literal["model", "layer", "head"] = "model"
    schedule: Literal["constant", "warmup", "decay"] = "constant"
    layers: Layers = Layers("all")

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {"alpha": Parameter((dims.num_heads,), self.alpha, self.alpha)} if self.learn else {}

    @property
    def target(self) -> Target:
        return self.on

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        if self.input == "norm":
            x = functional.layer_norm(x.transpose(1, 2), (x.shape[1], x.shape[3])).transpose(1, 2)
        alpha = per_head(p["alpha"]) if self.learn else self.alpha
        return t + alpha * ACTIVATIONS[self.activation](x)


@stage("unit_values")
@dataclass(frozen=True)
class UnitValues(Value):
    """V' = V/‖V‖, token by token and head by head."""

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        return unit(t)


@stage("value_residual")
@dataclass(frozen=True)
class ValueResidual(Value):
    """V' = λ₁V + λ₂V_first: every layer mixes in the first layer's values (Zhou et al. 2024)."""

    own: float = 0.5
    first: float = 0.5
    learn: bool = True

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        if not self.learn:
            return {}
        heads = (dims.num_heads,)
        return {
            "own": Parameter(heads, self.own, self.own),
            "first": Parameter(heads, self.first, self.first),
        }

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        own, other = (per_head(p["own"]), per_head(p["first"])) if self.learn else (self.own, self.first)
        return own * t + other * first
