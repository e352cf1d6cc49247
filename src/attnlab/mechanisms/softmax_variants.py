"""Weights that change what softmax does: its temperature with the length, its sign, or its order of keys."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from .parameter import Dims, Parameter
from .scores import per_head
from .stage import Params, argument, stage
from .weights import SOFTMAX, TileRule, Weights, hide

EPSILON = 1e-6
"""What softpick adds to its sum, as its authors do."""


@stage("ssmax")
@dataclass(frozen=True)
class ScalableSoftmax(Weights):
    """softmax(z·log n·s_ij), n the visible keys, z per head (Nakanishi 2025); z starts at 1/log(length).

    `length` is that of training: there the weights begin as those of softmax.
    """

    is_softmax: ClassVar[bool] = True
    has_row_factor: ClassVar[bool] = True
    tile_rule = SOFTMAX

    length: int = argument(1024, at_least=2)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        start = 1 / math.log(self.length)
        return {**super().parameters(dims), "scale": Parameter((dims.num_heads,), start, start)}

    def row_factor(self, n: Tensor, p: Params) -> Tensor:
        return per_head(p["scale"]) * n.log()

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        # Masked pairs are hidden after the product: −∞ times log 1 = 0 would be NaN.
        return torch.softmax(hide(scores * self.row_factor(n, p).to(scores.dtype), visible), -1)


def _softpick_backward(dw: Tensor, w: Tensor, scores: Tensor | None) -> object:
    """ds = e^s (dw·[s > 0] − sign(s)·Σ w dw) / (Σ|e^s − 1| + ε)."""
    assert scores is not None
    # The scores of masked pairs are unknown here, so the sum is taken from the largest weight, (e^s − 1) / sum.
    largest, at = w.max(-1, keepdim=True)
    top = scores.gather(-1, at).clamp(min=0)
    total = -torch.expm1(-top) / largest.masked_fill(largest == 0, 1)
    along = (dw * w).sum(-1, keepdim=True)
    dw.masked_fill_(scores <= 0, 0).addcmul_(scores.sign(), along, value=-1)
    return dw.mul_(torch.exp(scores - top).div_(total.masked_fill(largest == 0, 1)))


@stage("softpick")
@dataclass(frozen=True)
class Softpick(Weights):
    """max(e^s_ij − 1, 0) / (Σ_j |e^s_ij − 1| + ε): weights that may all be 0 (Zuhri et al. 2025)."""

    @property
    def tile_rule(self) -> TileRule:
        return TileRule(-torch.inf, self.apply_in_place, _softpick_backward, needs_scores=True)

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        scores = hide(scores, visible)
        # All times e^−top, so that nothing overflows.
        top = scores.detach().amax(-1, keepdim=True).clamp(min=0)
        one = torch.exp(-top)
        # A masked pair (−∞) has e^s − 1 = −1 and must not count.
        excess = (torch.exp(scores - top) - one).masked_fill(scores == -torch.inf, 0)
        return torch.relu(excess) / (excess.abs().sum(-1, keepdim=True) + EPSILON * one)


@stage("cog")
@dataclass(frozen=True)
class Cog(Weights):
    """sign(s_ij)·softmax(|s_ij|): weights may be negative (Lv et al. 2024)."""

    @property
    def tile_rule(self) -> TileRule:
        # ds = |w| dw − w Σ w dw
        return TileRule(
            -torch.inf,
            self.apply_in_place,
            lambda dw, w, _: dw.mul_(w.abs()).addcmul_(w, (w.sign() * dw).sum(-1, keepdim=True), value=-1),
        )

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        scores = hide(scores, visible)
        is_hidden = scores == -torch.inf
        size = scores.masked_fill(is_hidden, 0).abs().masked_fill(is_hidden, -torch.inf)
        return scores.sign() * torch.softmax(size, -1)


def _sum_later_logs(scores: Tensor) -> Tensor:
    """Return Σ_{k>j} log(1 − σ(s_ik)), the logarithm of what the later keys leave."""
    left = -functional.softplus(scores)
    return left.flip(-1).cumsum(-1).flip(-1) - left


def _stick_breaking_backward(dw: Tensor, w: Tensor, scores: Tensor | None) -> object:
    """ds_ik = g_ik (1 − σ_ik) − σ_ik Σ_{j<k} g_ij with g = w dw."""
    assert scores is not None
    dw.mul_(w)
    return dw.sub_(dw.cumsum(-1).mul_(torch.sigmoid(scores)))


@stage("stick_breaking")
@dataclass(frozen=True)
class StickBreaking(Weights):
    """σ(s_ij)·Π_{k>j} (1 − σ(s_ik)) over the visible keys k after j (Tan et al. 2024): the last key takes its share
    first, and each earlier one a share of what is left."""

    @property
    def tile_rule(self) -> TileRule:
        return TileRule(-torch.inf, self.apply_in_place, _stick_breaking_backward, needs_scores=True)

    def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
        scores = hide(scores, visible)
        return torch.exp(functional.logsigmoid(scores) + _sum_later_logs(scores))
