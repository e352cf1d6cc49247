"""What the weights mix: changes on the path of the values (or queries, or keys) before the scores are taken.

A stage sees t, the projected tensor it changes; x, the layer's input at the same positions, split by heads
like t; and first, the values of the first layer. [b h k d] each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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


class AddRelu(torch.autograd.Function):
    """t + α·ReLU(x) with one new tensor forward and one backward, where autograd by itself makes two each."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        rectified = torch.relu(x)
        return torch.add(t, rectified, alpha=alpha, out=rectified if rectified.dtype == t.dtype else None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad, torch.ops.aten.threshold_backward(grad, x, 0).mul_(ctx.alpha), None


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
        # The same tensor twice is the one thing torch cannot trace through such a function.
        if self.activation == "relu" and not self.learn and x is not t:
            return AddRelu.apply(t, x, self.alpha)  # type: ignore[no-any-return, no-untyped-call]
        activated = ACTIVATIONS[self.activation](x)
        return t + per_head(p["alpha"]) * activated if self.learn else torch.add(t, activated, alpha=self.alpha)


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
