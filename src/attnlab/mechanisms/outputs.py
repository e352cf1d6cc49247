"""What happens to the result of each head, [b h q d], before the model's output projection."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from .features import rms_unit
from .head_mixing import EPSILON
from .parameter import Dims, Parameter
from .scores import unit
from .stage import Params, Slot, Stage, argument, stage


@dataclass(frozen=True)
class Output(Stage):
    """Interface of the output stage, and what a report may assume about it.

    changes_output: the call may return something else than its input.
    """

    slot: ClassVar[Slot] = "output"
    traits: ClassVar[tuple[str, ...]] = ("changes_output",)
    changes_output: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, output: Tensor, q: Tensor, p: Params, *args: Any, **needs: Any) -> Tensor:
        """Return the changed output [b h q d]. A stage requests inputs by keyword-only parameters, instead of the last
        two: `x`, the layer's input at the queries [b q m]; `own`, the value of each query's token [b h q d]; `layer`,
        the number of the layer."""

    def penalty(self, output: Tensor) -> Tensor | None:
        """Return a term for the loss, or None."""
        return None


@stage("gate")
@dataclass(frozen=True)
class Gate(Output):
    """output ⊙ σ(x W), one gate per head or per channel of a head (Qiu et al. 2025); from=q takes the head's query.

    W starts at small random values, so that a gate starts near ½, and halves what a pretrained model computes.
    """

    from_: Literal["x", "q"] = "x"
    per: Literal["head", "channel"] = "head"

    @property
    def inputs(self) -> Mapping[str, bool]:
        return {"x": True} if self.from_ == "x" else {}

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        width = dims.value_dim if self.per == "channel" else 1
        source = dims.model_dim if self.from_ == "x" else dims.head_dim
        bound = 1 / math.sqrt(source)
        return {"weight": Parameter((dims.num_heads, width, source), -bound, bound, has_weight_decay=True)}

    def __call__(self, output: Tensor, q: Tensor, p: Params, *, x: Tensor | None = None) -> Tensor:
        if self.from_ == "q":
            return output * torch.sigmoid(q @ p["weight"].mT)
        assert x is not None
        return output * torch.sigmoid(x[:, None] @ p["weight"].mT)


@stage("head_norm")
@dataclass(frozen=True)
class HeadNorm(Output):
    """Each head's output divided by its root mean square, with a learned gain per channel if asked for."""

    gain: Literal["channel"] | None = None

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        shape = (dims.num_heads, dims.value_dim)
        return {"gain": Parameter(shape, 1, 1, per="layer")} if self.gain == "channel" else {}

    def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
        output = rms_unit(output, EPSILON)
        return output * p["gain"][:, None] if self.gain == "channel" else output


@stage("exclusive")
@dataclass(frozen=True)
class Exclusive(Output):
    """o_i − α(o_i·v̂_i)v̂_i: what a token attends to, without what it says itself (Zhai 2026)."""

    alpha: float = argument(1.0, shown="keyword")

    def __call__(self, output: Tensor, q: Tensor, p: Params, *, own: Tensor) -> Tensor:
        direction = unit(own)
        return output - self.alpha * (output * direction).sum(-1, keepdim=True) * direction


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
