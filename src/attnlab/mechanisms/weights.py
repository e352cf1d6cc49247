"""Weights as a pure function of scores along the last axis of [b h q k]; `divide` then divides by the visible length n.

The weights of forbidden pairs are set to 0 afterwards; their scores are replaced by that of a visible pair in the
same row, so they stay finite. A stage that normalises over a row requests `visible`, to exclude masked pairs.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from attnlab.errors import MechanismError

from .parameter import Dims, Parameter
from .scores import per_head
from .stage import Params, Slot, Stage, StageError, stage

aten = torch.ops.aten

START = 0.5
"""Initial m of divide=learned: n**-sigmoid(m)."""


@dataclass(frozen=True)
class TileRule:
    """How kernels turn a tile of scores [g r k] into weights in place, and gradients of weights into those of scores.

    fill: the score of forbidden pairs before `forward`, which must give them weight 0: −∞ or 0.
    forward: changes scores into weights; each row has all keys that its query sees.
    backward: changes dw into ds, given dw, the weights and, if `needs_scores`, the scores without `row_bias`; there
    masked pairs have the weight 0, and the score `fill` if that is finite.
    loop: the number of the equivalent loop in kernels/cpu/pairs.cpp, if there is one.
    """

    fill: float
    forward: Callable[[Tensor], object]
    backward: Callable[[Tensor, Tensor, Tensor | None], object]
    needs_scores: bool = False
    loop: int | None = None


@dataclass(frozen=True)
class Weights(Stage):
    """Interface of the weights stage, and what kernels may assume about it.

    pointwise: a weight depends only on its own score, n, the positions of its pair and the parameters of its head.
    keeps_zero: a score of 0 has weight 0.
    is_softmax, is_identity: the weights are the softmax of the scores, or the scores themselves.
    has_sink: a softmax has one more key, of score `sink_score` and value 0.
    has_row_factor: the scores of each row are multiplied by `row_factor` first.
    """

    slot: ClassVar[Slot] = "weights"
    traits: ClassVar[tuple[str, ...]] = (
        "pointwise", "keeps_zero", "is_softmax", "is_identity", "has_sink", "has_row_factor", "tile_rule",
    )  # fmt: skip
    pointwise: ClassVar[bool] = False
    keeps_zero: ClassVar[bool] = False
    is_softmax: ClassVar[bool] = False
    is_identity: ClassVar[bool] = False
    has_sink: ClassVar[bool] = False
    has_row_factor: ClassVar[bool] = False

    divide: Literal[1, "n", "sqrt_n", "learned", "sum"] = 1
    divide_at: Literal["query", "key"] = "query"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.divide == "sum" and self.divide_at == "key":
            raise StageError("divide_at", f"{self.name}: divide=sum divides a row by its sum; omit divide_at=key")

    @abstractmethod
    def __call__(self, scores: Tensor, n: Tensor, p: Params, *args: Any, **needs: Any) -> Tensor:
        """Return the undivided weights; n [b|1 h|1 q 1] is the number of visible keys of each query, at least 1.

        Replace the last two parameters by keyword-only ones that name the requested inputs. `visible` [b|1 h|1 q|1 k]
        is never all False in a row: fully masked rows are computed unmasked, then set to 0.
        """

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {"exponent": Parameter((dims.num_heads,), START, START)} if self.divide == "learned" else {}

    @property
    def tile_rule(self) -> TileRule | None:
        """The in-place rule for a tile, after `row_factor`, without learned parameters; None: kernels use `__call__`.

        Autograd then differentiates the call, on a tile if the stage is pointwise.
        """
        return None

    @property
    def advice(self) -> str:
        """What to declare for a faster kernel, or an empty string."""
        # No faster kernel passes x on, whatever the stage declares.
        if self.pointwise or self.is_softmax or self.tile_rule is not None or "x" in self.inputs:
            return ""
        return (
            f"{type(self).__name__} declares neither pointwise nor tile_rule: if each weight depends only on its own "
            "score, n and the parameters of its head, declare pointwise = True; if it is a softmax of scores times a "
            "factor of their row, declare is_softmax and has_row_factor = True and define row_factor(n, p); if it "
            "divides pointwise weights by their sum, leave that to divide=sum; otherwise define tile_rule with its "
            "derivative"
        )

    def sink_score(self, p: Params) -> Tensor | float:
        """Return the score of the sink, one for each head [h] or one number, for a stage with `has_sink`."""
        raise MechanismError(f"{type(self).__name__} declares has_sink and must define sink_score(p)")

    def row_factor(self, n: Tensor, p: Params) -> Tensor:
        """Return what the scores of each row are multiplied by, [b|1 h q 1], for a stage with `has_row_factor`."""
        raise MechanismError(f"{type(self).__name__} declares has_row_factor and must define row_factor(n, p)")

    def row_bias(self, n: Tensor) -> Tensor | float | None:
        """Return what is added to the scores of each row before the tile rule, or None."""
        return None

    def apply_in_place(self, scores: Tensor) -> object:
        """Replace scores by the weights of the call, for the tile rule of a call that does not use n."""
        return scores.copy_(self(scores, scores.new_ones(()), {}))

    def divisor(self, n: Tensor, p: Params) -> Tensor | None:
        """Return the divisor, a power of n, or None if `divide` is 1 or sum, which n does not tell."""
        if self.divide in (1, "sum"):
            return None
        if self.divide == "learned":
            return n ** torch.sigmoid(per_head(p["exponent"]))
        return n if self.divide == "n" else n.sqrt()


def hide(scores: Tensor, visible: Tensor | None) -> Tensor:
    """Return the scores with −∞ at masked pairs."""
    return scores if visible is None else scores.masked_fill(~visible, -torch.inf)


def masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """Return the softmax of each row over its visible pairs; a row without any gives zeros, never NaN."""
    # The lowest finite number, not −∞, which would give NaN in a row without visible pairs.
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~visible, lowest), -1) * visible


def softmax_backward(dw: Tensor, w: Tensor, _: Tensor | None) -> object:
    """ds = w (dw − Σ w dw), for softmax1 too, whose rows sum to less than 1."""
    return dw.sub_((dw * w).sum(-1, keepdim=True)).mul_(w)


def _sparsemax_backward(dw: Tensor, w: Tensor, _: Tensor | None) -> object:
    """ds = dw − mean of dw over the support, on the support."""
    support = w > 0
    dw.masked_fill_(~support, 0)
    mean = dw.sum(-1, keepdim=True) / support.sum(-1, keepdim=True).clamp(min=1)
    return dw.sub_(mean).masked_fill_(~support, 0)


def _entmax15_backward(dw: Tensor, w: Tensor, _: Tensor | None) -> object:
    """ds = √w (dw − Σ √w dw / Σ √w)."""
    r = w.sqrt()
    dw.mul_(r)
    mean = dw.sum(-1, keepdim=True) / r.sum(-1, keepdim=True).clamp(min=torch.finfo(r.dtype).tiny)
    return dw.sub_(r * mean)


SOFTMAX = TileRule(-torch.inf, lambda s: torch.softmax(s, -1, out=s), softmax_backward, loop=0)


def softmax_with_sink(scores: Tensor, sink: Tensor | float) -> Tensor:
    """Return exp(s_ij) / (exp(sink) + Σ_j exp(s_ij)); the sink is [h 1 1] or a number."""
    sink = torch.as_tensor(sink, dtype=scores.dtype, device=scores.device)
    top = torch.maximum(scores.detach().amax(-1, keepdim=True), sink.detach())
    numerator = torch.exp(scores - top)
    return numerator / (numerator.sum(-1, keepdim=True) + torch.exp(sink - top))


@stage("softmax")
@dataclass(frozen=True)
class Softmax(Weights):
    """exp(s_ij) / Σ_j exp(s_ij); with sink=learned, exp(b) is added to the sum, b per head, 0 at first (gpt-oss)."""

    is_softmax: ClassVar[bool] = True

    sink: Literal["learned"] | None = None

    @property
    def has_sink(self) -> bool:  # type: ignore[override]
        return self.sink is not None

    @property
    def tile_rule(self) -> TileRule | None:
        return None if self.has_sink else SOFTMAX

    @property
    def advice(self) -> str:
        return ""

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {**super().parameters(dims), **({"sink": Parameter((dims.num_heads,))} if self.has_sink else {})}

    @property
    def replaces(self) -> Mapping[str, str | None]:
        return {"sinks": "sink"} if self.has_sink else {}

    def sink_score(self, p: Params) -> Tensor:
        return p["sink"]

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        scores = hide(scores, visible)
        return softmax_with_sink(scores, per_head(p["sink"])) if self.has_sink else torch.softmax(scores, -1)


@stage("softmax1")
@dataclass(frozen=True)
class Softmax1(Weights):
    """exp(s_ij) / (1 + Σ_j exp(s_ij)): a query may attend to nothing (Miller 2023)."""

    is_softmax: ClassVar[bool] = True
    has_sink: ClassVar[bool] = True

    @property
    def tile_rule(self) -> TileRule:
        return TileRule(-torch.inf, self.apply_in_place, softmax_backward, loop=1)

    def sink_score(self, p: Params) -> float:
        return 0.0

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        return softmax_with_sink(hide(scores, visible), 0.0)


@stage("relu")
@dataclass(frozen=True)
class Relu(Weights):
    """max(s_ij, 0)."""

    pointwise: ClassVar[bool] = True
    keeps_zero: ClassVar[bool] = True

    tile_rule = TileRule(0, torch.relu_, lambda dw, w, _: aten.threshold_backward.grad_input(dw, w, 0, grad_input=dw))

    def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
        return torch.relu(scores)


@stage("gelu")
@dataclass(frozen=True)
class Gelu(Weights):
    """s_ij·Φ(s_ij), Φ the normal distribution function: a smooth ReLU, slightly negative for small negative scores."""

    pointwise: ClassVar[bool] = True
    keeps_zero: ClassVar[bool] = True

    tile_rule = TileRule(0, aten.gelu_, lambda dw, _, s: aten.gelu_backward.grad_input(dw, s, grad_input=dw), True)

    def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
        return torch.nn.functional.gelu(scores)


@stage("sigmoid")
@dataclass(frozen=True)
class Sigmoid(Weights):
    """σ(s_ij + bias), bias = −log n by default (Ramapuram et al. 2024)."""

    pointwise: ClassVar[bool] = True

    bias: float | Literal["minus_log_n"] = "minus_log_n"

    tile_rule = TileRule(
        -torch.inf, torch.sigmoid_, lambda dw, w, _: aten.sigmoid_backward.grad_input(dw, w, grad_input=dw)
    )

    def row_bias(self, n: Tensor) -> Tensor | float:
        return -n.log() if self.bias == "minus_log_n" else self.bias

    def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
        return torch.sigmoid(scores + self.row_bias(n))


@stage("identity")
@dataclass(frozen=True)
class Identity(Weights):
    """s_ij unchanged: linear in the values, the queries and the keys."""

    pointwise: ClassVar[bool] = True
    keeps_zero: ClassVar[bool] = True
    is_identity: ClassVar[bool] = True

    tile_rule = TileRule(0, lambda s: s, lambda dw, w, _: dw)

    def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
        return scores


@stage("argmax")
@dataclass(frozen=True)
class Argmax(Weights):
    """1 for the largest score, the first of ties; no gradient, or softmax's if straight_through."""

    straight_through: bool = False

    @property
    def tile_rule(self) -> TileRule | None:
        return None if self.straight_through else TileRule(-torch.inf, self.apply_in_place, lambda dw, w, _: dw.zero_())

    @property
    def advice(self) -> str:
        return ""

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        scores = hide(scores, visible)
        hard = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1)
        if not self.straight_through:
            return hard
        soft = torch.softmax(scores, -1)
        return hard + (soft - soft.detach())


def _sort_rows(scores: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return each row shifted so that its largest score is 0, with the floor as minimum; sorted; and the ranks."""
    # In fp32 at least: bf16 cannot represent the ranks of a row beyond 256.
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    z = (scores - scores.amax(-1, keepdim=True)).clamp(min=floor)
    return z, z.sort(-1, descending=True).values, torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)


@stage("sparsemax")
@dataclass(frozen=True)
class Sparsemax(Weights):
    """The projection of a row of scores onto the simplex: max(s_ij − τ_i, 0) (Martins & Astudillo 2016)."""

    @property
    def tile_rule(self) -> TileRule:
        return TileRule(-torch.inf, self.apply_in_place, _sparsemax_backward, loop=2)

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        # A score 1 or more below the largest has weight 0, so raising −∞ to −2 changes nothing.
        z, ordered, rank = _sort_rows(hide(scores, visible), floor=-2)
        partial = ordered.cumsum(-1) - 1
        support = (ordered * rank > partial).sum(-1, keepdim=True).clamp(min=1)
        threshold = partial.gather(-1, support - 1) / support.to(z.dtype)
        return torch.relu(z - threshold).to(scores.dtype)


@stage("entmax15")
@dataclass(frozen=True)
class Entmax15(Weights):
    """max(s_ij/2 − τ_i, 0)², between softmax and sparsemax (Peters et al. 2019)."""

    @property
    def tile_rule(self) -> TileRule:
        return TileRule(-torch.inf, self.apply_in_place, _entmax15_backward, loop=3)

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        # A score 2 or more below the largest has weight 0, so raising −∞ to −4 changes nothing.
        z, ordered, rank = _sort_rows(hide(scores, visible), floor=-4)
        z, ordered = z / 2, ordered / 2
        mean = ordered.cumsum(-1) / rank
        spread = rank * ((ordered * ordered).cumsum(-1) / rank - mean * mean)
        slack = (1 - spread) / rank
        has_root = slack > 0
        candidate = mean - torch.where(has_root, torch.where(has_root, slack, 1).sqrt(), 0)
        support = (candidate <= ordered).sum(-1, keepdim=True).clamp(min=1)
        return torch.relu(z - candidate.gather(-1, support - 1)).square().to(scores.dtype)
