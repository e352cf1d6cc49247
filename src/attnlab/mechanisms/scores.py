"""Scores: s_ij as a pure function of q_i and k_j, from [b h q d] and [b h k d] to [b h q k].

Axes: b batch, h heads, q queries, k keys, d head_dim, c hidden. Pairs are independent, so kernels may compute any block
of them; a score that requests positions or visible pairs gets a block of queries and all keys that these can see.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from attnlab.errors import MechanismError

from .parameter import Dims, Parameter
from .stage import Params, Positions, Slot, Stage, argument, stage

Learnable = float | Literal["learned"]
Form = Literal[
    "dot", "cosine", "angle", "squared_euclidean", "features",
    "additive", "manhattan", "euclidean", "minkowski", "chebyshev",
]  # fmt: skip
"""The scores for which kernels have faster code than the call. The first five are functions of one dot product."""


@dataclass(frozen=True)
class Score(Stage):
    """Interface of the score stage, and what kernels may assume about it.

    form: the computation of `Form` that equals the call, without `position_bias`; None if only the call can be used.
    "features" is query_features(q)·key_features(k); the compiled loops compare `features`.
    bias_of: what `position_bias`, which the call adds, depends on: both positions or only their difference; None: the
    call adds no bias.
    is_symmetric: score(a, b) = score(b, a).
    """

    slot: ClassVar[Slot] = "score"
    traits: ClassVar[tuple[str, ...]] = ("form", "bias_of", "is_symmetric", "takes_scale")
    form: ClassVar[Form | None] = None
    bias_of: ClassVar[Literal["positions", "distances"] | None] = None
    is_symmetric: ClassVar[bool] = False

    def scale_factor(self, head_dim: int, p: Params) -> Tensor | float:
        """Return the factor of a dot or cosine score."""
        return 1.0

    def features(self, q: Tensor, k: Tensor, p: Params) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries and keys that the compiled loops compare, and a parameter [h c] of the loops."""
        return q, k, q.new_zeros(q.shape[1], 1)

    def query_features(self, q: Tensor, p: Params) -> Tensor:
        """Return what the queries contribute to a score of form "features", [b h q c]."""
        return q

    def key_features(self, k: Tensor, p: Params) -> Tensor:
        """Return what the keys contribute to a score of form "features", [b h k c]."""
        return k

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        """Return what the call adds to the pairs at these positions, [b|1 h q k], for a score with `bias_of`."""
        raise MechanismError(f"{type(self).__name__} declares bias_of and must define position_bias(positions, p)")

    @property
    def takes_scale(self) -> bool:
        """Whether a model's scale replaces that of the score."""
        return False

    @property
    def advice(self) -> str:
        """What to declare for a faster kernel, or an empty string."""
        if self.form is not None:
            return ""
        if "x" in self.inputs:
            return (
                f"{type(self).__name__} requests x, which only this kernel passes on, and query_features and "
                "key_features do not get it: if x makes the past fade, so that a score loses a number for each token "
                "between key and query, write that as a stage of its own, derived from attnlab.Forget, with "
                "log_kept(x, p, k)"
            )
        return (
            f"{type(self).__name__} declares no form: if the score is a dot product of functions of q and k, declare "
            'form = "features" and define query_features(q, p) and key_features(k, p); if it adds a bias of positions, '
            'declare bias_of = "distances" or "positions" too and define position_bias(positions, p)'
        )

    @abstractmethod
    def __call__(self, q: Tensor, k: Tensor, p: Params, *args: Any, **needs: Any) -> Tensor:
        """Return the scores [b h q k]. A stage requests inputs by keyword-only parameters, instead of these."""


def per_head(parameter: Tensor) -> Tensor:
    """Reshape one number per head so that it multiplies [b h q k]."""
    return parameter[:, None, None]


def unit(x: Tensor) -> Tensor:
    """Return x/‖x‖ along the last axis; a zero vector stays zero, with a finite gradient."""
    # Not x·rsqrt(x·x): its gradient overflows for ‖x‖ < 1e-13 in fp32, and x·x itself for ‖x‖ > 256 in fp16.
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length == 0, 1, length)


def _root(x: Tensor, exponent: Tensor | float) -> Tensor:
    """Return x**exponent for x ≥ 0, with gradient 0 at 0 (the distance of equal vectors)."""
    is_zero = x == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, x) ** exponent)


@stage("dot")
@dataclass(frozen=True)
class Dot(Score):
    """scale · q·k (Vaswani et al. 2017), scale = 1/√d by default."""

    form: ClassVar[Form] = "dot"
    is_symmetric: ClassVar[bool] = True

    scale: Learnable | None = None

    @property
    def takes_scale(self) -> bool:
        return self.scale is None

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        start = 1 / math.sqrt(dims.head_dim)
        return {"scale": Parameter((dims.num_heads,), start, start)} if self.scale == "learned" else {}

    def scale_factor(self, head_dim: int, p: Params) -> Tensor | float:
        if self.scale == "learned":
            return per_head(p["scale"])
        return 1 / math.sqrt(head_dim) if self.scale is None else self.scale

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        return (q * self.scale_factor(q.shape[-1], p)) @ k.mT


@stage("cosine")
@dataclass(frozen=True)
class Cosine(Score):
    """scale · q̂·k̂ with q̂ = q/‖q‖, scale = 1 by default; a learned scale starts at √d, one per head."""

    form: ClassVar[Form] = "cosine"
    is_symmetric: ClassVar[bool] = True

    scale: Learnable | None = None

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        # At √d the scores of random tokens have variance 1, like those of the scaled dot product.
        start = math.sqrt(dims.head_dim)
        return {"scale": Parameter((dims.num_heads,), start, start)} if self.scale == "learned" else {}

    def scale_factor(self, head_dim: int, p: Params) -> Tensor | float:
        if self.scale == "learned":
            return per_head(p["scale"])
        return 1.0 if self.scale is None else self.scale

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        return (unit(q) * self.scale_factor(q.shape[-1], p)) @ unit(k).mT


@stage("angle")
@dataclass(frozen=True)
class Angle(Score):
    """1 − 2·arccos(q̂·k̂)/π, in [−1, 1]; gradient 0 if q and k are parallel, where it is undefined."""

    form: ClassVar[Form] = "angle"
    is_symmetric: ClassVar[bool] = True

    @staticmethod
    def of(cosine: Tensor) -> Tensor:
        """Return the score of a pair from its cosine."""
        is_inside = cosine.abs() < 1
        angle = torch.arccos(torch.where(is_inside, cosine, 0))
        return torch.where(is_inside, 1 - angle * (2 / math.pi), cosine.detach().clamp(-1, 1))

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        return self.of(unit(q) @ unit(k).mT)


@stage("additive")
@dataclass(frozen=True)
class Additive(Score):
    """w₂ᵀ tanh(W_q q + W_k k), W and w₂ per head (Bahdanau et al. 2014): w₂ᵀ tanh(W₁[q;k]), factored."""

    form: ClassVar[Form] = "additive"

    hidden: int | None = argument(None, at_least=1)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        hidden = self.hidden or dims.head_dim
        # Glorot's bound avoids saturating tanh at the start; the output weight starts like a linear layer's.
        bound, out = math.sqrt(6 / (dims.head_dim + hidden)), 1 / math.sqrt(hidden)
        return {
            "query": Parameter((dims.num_heads, hidden, dims.head_dim), -bound, bound, has_weight_decay=True),
            "key": Parameter((dims.num_heads, hidden, dims.head_dim), -bound, bound, has_weight_decay=True),
            "out": Parameter((dims.num_heads, hidden), -out, out, has_weight_decay=True),
        }

    def features(self, q: Tensor, k: Tensor, p: Params) -> tuple[Tensor, Tensor, Tensor]:
        """Return W_q q [b h q c], W_k k [b h k c] and w₂ [h c]."""
        return q @ p["query"].mT, k @ p["key"].mT, p["out"]

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        a, b, out = self.features(q, k, p)
        return torch.einsum("bhqkc,hc->bhqk", torch.tanh(a[..., :, None, :] + b[..., None, :, :]), out)


def _differences(q: Tensor, k: Tensor) -> Tensor:
    """Return q_i − k_j for every pair, [b h q k d]."""
    return q[..., :, None, :] - k[..., None, :, :]


@stage("euclidean")
@dataclass(frozen=True)
class Euclidean(Score):
    """−‖q−k‖²/√d, or −‖q−k‖/√d with squared=false."""

    is_symmetric: ClassVar[bool] = True

    squared: bool = True

    @property
    def form(self) -> Form:  # type: ignore[override]
        return "squared_euclidean" if self.squared else "euclidean"

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        distance = _differences(q, k).square().sum(-1)
        return -(distance if self.squared else _root(distance, 0.5)) / math.sqrt(q.shape[-1])


@stage("manhattan")
@dataclass(frozen=True)
class Manhattan(Score):
    """−‖q−k‖₁/√d."""

    form: ClassVar[Form] = "manhattan"
    is_symmetric: ClassVar[bool] = True

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        return -_differences(q, k).abs().sum(-1) / math.sqrt(q.shape[-1])


@stage("minkowski")
@dataclass(frozen=True)
class Minkowski(Score):
    """−‖q−k‖_p; a learned p is 1 + softplus(power), one per head, and starts at 2."""

    form: ClassVar[Form] = "minkowski"
    is_symmetric: ClassVar[bool] = True

    p: Learnable = argument(2.0, shown="keyword", at_least=1)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        start = math.log(math.e - 1)
        return {"power": Parameter((dims.num_heads,), start, start)} if self.p == "learned" else {}

    def features(self, q: Tensor, k: Tensor, p: Params) -> tuple[Tensor, Tensor, Tensor]:
        exponent = torch.as_tensor(self.exponent(p), dtype=q.dtype, device=q.device)
        return q, k, exponent.expand(q.shape[1])[:, None]

    def exponent(self, p: Params) -> Tensor | float:
        """Return p ≥ 1, as one number or one per head."""
        return 1 + torch.nn.functional.softplus(p["power"]) if self.p == "learned" else float(self.p)

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        exponent = self.exponent(p)
        pair = per_head(exponent) if isinstance(exponent, Tensor) else exponent
        element = pair[..., None] if isinstance(pair, Tensor) else pair
        distance = _differences(q, k).abs()
        # ‖x‖_p = m·‖x/m‖_p for any m, so m needs no gradient; the largest coordinate prevents overflow.
        largest = distance.detach().amax(-1, keepdim=True)
        largest = torch.where(largest == 0, 1, largest)
        return -_root(_root(distance / largest, element).sum(-1), 1 / pair) * largest[..., 0]


@stage("chebyshev")
@dataclass(frozen=True)
class Chebyshev(Score):
    """−max_c |q_c − k_c|; if several coordinates tie, the gradient goes to the first."""

    form: ClassVar[Form] = "chebyshev"
    is_symmetric: ClassVar[bool] = True

    def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
        return -_differences(q, k).abs().max(-1).values
