"""What happens to queries and keys before they meet: normalised, shifted, or mapped to other features.

A stage that acts before positions (`norm`, `shift`) acts where a model projects, before its rotation; a feature map
acts last of all, so that q·k is the product that the score computes. [b h n d] each.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from .parameter import Dims, Parameter
from .scores import per_head, unit
from .stage import Params, Slot, Stage, argument, stage

Side = Literal["q", "k"]
EPSILON = 1e-6
"""Added to the mean square of a vector before its root is divided by, as in Qwen3."""


@dataclass(frozen=True)
class Features(Stage):
    """Interface of a stage that changes queries and keys, and what kernels and models may assume about it.

    acts_before_positions: it acts before a rotation by positions, on the projections of a model.
    sides: what it changes: queries, keys or both. num_before: `before` has so many tokens, [b h n num_before d], the
    nearest first; None: one, [b h n d].
    """

    slot: ClassVar[Slot] = "features"
    traits: ClassVar[tuple[str, ...]] = ("acts_before_positions", "sides", "num_before")
    acts_before_positions: ClassVar[bool] = False
    sides: ClassVar[tuple[Side, ...]] = ("q", "k")
    num_before: ClassVar[int | None] = None

    def width(self, head_dim: int) -> int:
        """Return the number of channels that the call makes of these."""
        return head_dim

    @abstractmethod
    def __call__(self, t: Tensor, side: Side, p: Params, *args: Any, **needs: Any) -> Tensor:
        """Return the changed queries or keys [b h n c]. A keyword-only parameter `before`, instead of the last two,
        requests the tensor of the token before each, [b h n d], zeros at the first."""


def rms_unit(x: Tensor, epsilon: float = EPSILON) -> Tensor:
    """Return x divided by the root of its mean square along the last axis."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


@stage("norm")
@dataclass(frozen=True)
class Norm(Features):
    """q and k divided by their root mean square, or by their length (l2), with a gain (Dehghani et al. 2023, Qwen3).

    gain: none, one number per head, or one per channel, which the heads of a model's layer share.
    """

    acts_before_positions: ClassVar[bool] = True

    kind: Literal["rms", "l2"] = argument("rms", shown="positional")
    gain: Literal["head", "channel"] | None = None

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        heads = {"query": dims.num_heads, "key": dims.num_key_heads}
        if self.gain is None:
            return {}
        if self.gain == "head":
            return {name: Parameter((num,), 1, 1) for name, num in heads.items()}
        return {name: Parameter((num, dims.head_dim), 1, 1, per="layer") for name, num in heads.items()}

    @property
    def replaces(self) -> Mapping[str, str | None]:
        # The gain of a model's RMS norm says nothing about vectors of length 1.
        has_same_gain = self.kind == "rms" and self.gain == "channel"
        return {"query norm": "query" if has_same_gain else None, "key norm": "key" if has_same_gain else None}

    def __call__(self, t: Tensor, side: Side, p: Params) -> Tensor:
        t = rms_unit(t) if self.kind == "rms" else unit(t)
        if self.gain is None:
            return t
        gain = p["query" if side == "q" else "key"]
        return t * (per_head(gain) if self.gain == "head" else gain[:, None])


@stage("shift")
@dataclass(frozen=True)
class Shift(Features):
    """The last share of each key's channels comes from the token before: a head can find what follows a token."""

    acts_before_positions: ClassVar[bool] = True
    sides: ClassVar[tuple[Side, ...]] = ("k",)

    what: Literal["keys"] = argument("keys", shown="positional")
    share: float = argument(0.5, at_least=0, at_most=1)

    def __call__(self, t: Tensor, side: Side, p: Params, *, before: Tensor) -> Tensor:
        kept = t.shape[-1] - round(t.shape[-1] * self.share)
        return torch.cat([t[..., :kept], before[..., kept:]], -1)


def _expand_taylor(t: Tensor) -> Tensor:
    """Return features whose dot product is 1 + s + s²/2 with s = q·k/√d, the Taylor polynomial of e^s."""
    t = t / t.shape[-1] ** 0.25
    squares = (t[..., :, None] * t[..., None, :]).flatten(-2) / math.sqrt(2)
    return torch.cat([torch.ones_like(t[..., :1]), t, squares], -1)


MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu1": lambda t: functional.elu(t) + 1,
    "relu": torch.relu,
    "softmax": lambda t: torch.softmax(t, -1),
    "taylor": _expand_taylor,
}


@stage("feature")
@dataclass(frozen=True)
class FeatureMap(Features):
    """q and k mapped to φ(q) and φ(k): elu + 1 (Katharopoulos et al. 2020), ReLU, softmax over the channels (Shen et
    al. 2018), or the second-order Taylor features of e^s (Arora et al. 2024)."""

    kind: Literal["elu1", "relu", "softmax", "taylor"] = argument("elu1", shown="positional")

    def width(self, head_dim: int) -> int:
        return 1 + head_dim + head_dim**2 if self.kind == "taylor" else head_dim

    def __call__(self, t: Tensor, side: Side, p: Params) -> Tensor:
        return MAPS[self.kind](t)
