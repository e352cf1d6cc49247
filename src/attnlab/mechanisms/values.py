"""Changes of the values (or queries, or keys) before the scores are computed.

A stage gets t, the projected tensor it changes; x, the layer's input at the same positions, split into heads like t;
and first, the values of the first layer. [b h k d] each. It may request `tokens`, the token ids [b k], and `before`, t
of the token before each, zeros at the first and after padding [b h k d], or of several (`num_before`). It acts token by
token otherwise: with a cache it gets only the new tokens, and t holds padding too.
"""

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.nn import functional

from .arguments import Layers
from .parameter import Dims, Parameter
from .scores import per_head, unit
from .stage import Params, Slot, Stage, argument, stage

Target = Literal["v", "q", "k"]


@dataclass(frozen=True)
class Value(Stage):
    """Interface of the values stage, and what a model may assume about it.

    uses_x, uses_first: the call uses x, or the first layer's values. only_adds: it adds to t something that does not
    depend on t, and so commutes with an additive adapter. num_before: `before` has so many tokens, the nearest first,
    [b h k num_before d]; None: one, [b h k d].
    """

    slot: ClassVar[Slot] = "values"
    traits: ClassVar[tuple[str, ...]] = ("uses_x", "uses_first", "only_adds", "acts_by_head", "num_before")
    uses_x: ClassVar[bool] = True
    uses_first: ClassVar[bool] = True
    only_adds: ClassVar[bool] = False
    num_before: ClassVar[int | None] = None

    @property
    def target(self) -> Target:
        """The tensor the stage changes."""
        return "v"

    @property
    def acts_by_head(self) -> bool:
        """Whether the result depends on the split of the width into heads."""
        return True

    @property
    def active_layers(self) -> Layers:
        """The layers of a model that the stage acts in: its argument `layers`, if it has one."""
        return getattr(self, "layers", Layers("all"))

    @property
    def strength(self) -> float | None:
        """The factor of what the stage adds, or None."""
        return None

    def neutral(self) -> Self | None:
        """Return a variant of the stage that must change nothing, for audits, or None."""
        return None

    def identity(self) -> Self | None:
        """Return a variant that must equal a projection of W + strength·I, for audits, or None."""
        return None

    @abstractmethod
    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *args: Any, **needs: Any) -> Tensor:
        """Return the changed tensor, of the shape of t. A stage requests `tokens` and `before` by keyword-only
        parameters, instead of the last arguments here."""


EMBEDDING_STD = 0.02
"""The standard deviation of the initial token embeddings of BERT and GPT-2."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "identity": lambda x: x,
    "abs": torch.abs,
}


class AddRelu(torch.autograd.Function):
    """t + α·ReLU(x) with one new tensor forward and one backward; autograd would allocate two each."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, x: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        rectified = torch.relu(x)
        # torch.export traces this as if autograd differentiated it, which it does not with out=.
        is_reused = rectified.dtype == t.dtype and not torch.compiler.is_compiling()
        return torch.add(t, rectified, alpha=alpha, out=rectified if is_reused else None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad, torch.ops.aten.threshold_backward(grad, x, 0).mul_(ctx.alpha), None


@stage("bypass")
@dataclass(frozen=True)
class Bypass(Value):
    """V' = V + α·activation(x): the layer's input bypasses the value projection (Shin 2025).

    `input=norm` normalises x over its whole width first. `per`, `schedule` and `layers` set how α is shared, how it
    changes during training, and in which layers it acts; they have no effect in a single attention.
    """

    uses_first: ClassVar[bool] = False
    only_adds: ClassVar[bool] = True

    alpha: float = argument(0.5, shown="keyword")
    on: Target = "v"
    activation: Literal["relu", "gelu", "silu", "identity", "abs"] = "relu"
    input: Literal["raw", "norm"] = "raw"
    learn: bool = False
    per: Literal["model", "layer", "head"] = "model"
    schedule: Literal["constant", "warmup", "decay"] = "constant"
    layers: Layers = Layers("all")

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {"alpha": Parameter((dims.num_heads,), self.alpha, self.alpha, per=self.per)} if self.learn else {}

    @property
    def target(self) -> Target:
        return self.on

    @property
    def acts_by_head(self) -> bool:
        return self.per == "head"  # else the whole width is treated as one head, which is contiguous

    @property
    def strength(self) -> float:
        return self.alpha

    def neutral(self) -> Self:
        return dataclasses.replace(self, learn=False, alpha=0.0)

    def identity(self) -> Self:
        return dataclasses.replace(self, learn=False, activation="identity", input="raw")

    @property
    def is_scheduled(self) -> bool:
        return self.schedule != "constant"

    def _scale_at(self, progress: float) -> float:
        return {"constant": 1.0, "warmup": progress, "decay": 1 - progress}[self.schedule]

    def at(self, progress: float) -> Self:
        return dataclasses.replace(self, alpha=self.alpha * self._scale_at(progress))

    def parameters_at(self, p: Params, progress: float) -> Params:
        scale = self._scale_at(progress)
        return p if scale == 1 else {name: value * scale for name, value in p.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        note = f"'{self}' takes the layer's input as x=; without it the projected tensor is used"
        has_model_settings = (self.per, self.schedule, self.layers) != (Bypass.per, Bypass.schedule, Bypass.layers)
        return (note, f"per, schedule and layers of '{self}' act in a model") if has_model_settings else (note,)

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        if self.input == "norm":
            x = functional.layer_norm(x.transpose(1, 2), (x.shape[1], x.shape[3])).transpose(1, 2)
        # torch cannot trace through an autograd.Function that gets the same tensor twice.
        if self.activation == "relu" and not self.learn and x is not t:
            return AddRelu.apply(t, x, self.alpha)  # type: ignore[no-any-return, no-untyped-call]
        activated = ACTIVATIONS[self.activation](x)
        return t + per_head(p["alpha"]) * activated if self.learn else torch.add(t, activated, alpha=self.alpha)


@stage("unit_values")
@dataclass(frozen=True)
class UnitValues(Value):
    """V' = V/‖V‖ per token and head."""

    uses_x: ClassVar[bool] = False
    uses_first: ClassVar[bool] = False

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        return unit(t)


@stage("value_residual")
@dataclass(frozen=True)
class ValueResidual(Value):
    """V' = λ₁V + λ₂V_first: every layer mixes in the first layer's values (Zhou et al. 2024)."""

    uses_x: ClassVar[bool] = False

    own: float = 0.5
    first: float = 0.5
    learn: bool = True

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"'{self}' takes the first layer's values as first=; without it v is used",)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        starts = {"own": self.own, "first": self.first} if self.learn else {}
        return {name: Parameter((dims.num_heads,), start, start) for name, start in starts.items()}

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        own, other = (per_head(p["own"]), per_head(p["first"])) if self.learn else (self.own, self.first)
        return own * t + other * first


@stage("value_embedding")
@dataclass(frozen=True)
class ValueEmbedding(Value):
    """V' = V + λ·E[token]: every layer has a learned table of values by token id (Jordan et al. 2024, modded-nanogpt).

    λ, one per head, starts at `scale`. E starts with a standard deviation of 0.02, like the token embeddings of BERT
    and GPT-2, so that λ and E both get gradients. `layers` are the layers of a model that have a table.
    """

    uses_x: ClassVar[bool] = False
    uses_first: ClassVar[bool] = False
    only_adds: ClassVar[bool] = True

    scale: float = 0.5
    learn: bool = True
    layers: Layers = Layers("all")

    @property
    def strength(self) -> float:
        return self.scale

    def neutral(self) -> Self:
        return dataclasses.replace(self, learn=False, scale=0.0)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"'{self}' takes token ids as tokens= [batch, length]; a model passes its input_ids",)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        limit = EMBEDDING_STD * math.sqrt(3)  # a uniform distribution of this standard deviation
        table = Parameter((dims.num_heads, dims.vocab_size, dims.value_dim), -limit, limit, is_table=True)
        scale = {"scale": Parameter((dims.num_heads,), self.scale, self.scale)} if self.learn else {}
        return {"table": table, **scale}

    def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, tokens: Tensor) -> Tensor:
        # Not table[:, tokens], which would read negative ids from the end.
        rows: Tensor = p["table"].index_select(1, tokens.flatten()).unflatten(1, tokens.shape).transpose(0, 1)
        return t + (per_head(p["scale"]) if self.learn else self.scale) * rows
