"""The scores of a tile and their gradient, written into memory that is there already.

A matrix product serves dot-like scores, the compiled loops of pairs.cpp all others. Axes: g groups (batch rows ×
heads), r rows (queries), k keys, c channels.
"""

from __future__ import annotations

import math
import warnings
from typing import Protocol

import torch
from torch import Tensor

from attnlab.errors import AttnlabWarning

from . import native
from .tiles import Tile


def groups(x: Tensor, tile: Tile) -> Tensor:
    """Return the tile's batch rows and heads of [b h n c] as [g n c], a view."""
    return x[tile.batch, tile.heads].flatten(0, 1)


class Pairs(Protocol):
    """Scores of one problem, tile by tile. `needs_scores` asks for the scores again in the backward pass."""

    needs_scores: bool

    def scores(self, tile: Tile, out: Tensor) -> None:
        """Write the scores [g r k] of the pairs that causality allows; the others may hold anything."""

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        """Add a tile's part to the gradients; ds is 0 for forbidden pairs, and may be overwritten."""

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of q, k and the extra parameter."""


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to an accumulator that may be of higher precision."""
    if total.dtype == left.dtype:
        total.baddbmm_(left, right)
    else:
        total.add_(left @ right)


class Dot:
    """s = q·k."""

    needs_scores = False

    def __init__(self, q: Tensor, k: Tensor, accumulator: torch.dtype) -> None:
        self.q, self.k = q, k
        self.accumulator = accumulator

    def start(self) -> None:
        """Make room for the gradients."""
        self.dq = torch.empty_like(self.q)
        self.dk = torch.zeros_like(self.k, dtype=self.accumulator)

    def scores(self, tile: Tile, out: Tensor) -> None:
        q, k = groups(self.q, tile)[:, tile.start : tile.stop], groups(self.k, tile)[:, : tile.horizon]
        torch.bmm(q, k.mT, out=out)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        q, k = groups(self.q, tile)[:, tile.start : tile.stop], groups(self.k, tile)[:, : tile.horizon]
        groups(self.dq, tile)[:, tile.start : tile.stop] = torch.bmm(ds, k)
        add_product(groups(self.dk, tile)[:, : tile.horizon], ds.mT, q)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.dq, self.dk.to(self.k.dtype), self.q.new_zeros(0)


class Angle(Dot):
    """s = 1 − 2·arccos(q·k)/π for unit q and k, so that ds/d(q·k) = 2/π / cos(s·π/2)."""

    needs_scores = True

    def scores(self, tile: Tile, out: Tensor) -> None:
        super().scores(tile, out)
        out.clamp_(-1, 1).arccos_().mul_(-2 / math.pi).add_(1)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        assert scores is not None
        is_inside = scores.abs() < 1
        slope = torch.cos(scores * (math.pi / 2)).reciprocal_().mul_(2 / math.pi)
        super().accumulate(tile, ds.mul_(slope).masked_fill_(~is_inside, 0), None)


class Compiled:
    """Scores from the compiled loops. `extra` [h c] is additive's w₂, or [h 1] minkowski's p."""

    def __init__(self, kind: str, q: Tensor, k: Tensor, extra: Tensor, first: int | None) -> None:
        self.kind, self.first, self.shape = kind, first, (q.shape, k.shape, extra.shape)
        self.needs_scores = kind in ("minkowski", "euclidean")
        self.channels = -(-q.shape[-1] // 16) * 16
        if kind == "additive":
            q, k = self.exponentials(q, k)
        self.a, self.b = (self.padded(x) for x in (q, k))
        self.keys = -(-k.shape[2] // 32) * 32
        self.bt = torch.nn.functional.pad(self.b.mT, (0, self.keys - k.shape[2])).contiguous()
        self.w = self.padded(extra).expand(q.shape[0], *extra.shape[:1], self.channels).contiguous()
        self.p = extra[:, :1, None].expand(q.shape[0], -1, 1, 1)

    def exponentials(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return e^{2q} and e^{2k}, or q and k themselves where a product of two could overflow."""
        limit = 40 if q.dtype == torch.float32 else 340
        largest = float(q.abs().amax() + k.abs().amax()) if q.numel() and k.numel() else 0.0
        if largest <= limit:
            return torch.exp(2 * q), torch.exp(2 * k)
        self.kind = "additive_safe"
        warnings.warn(
            f"attnlab: additive features reach {largest:.3g}, beyond the ±{limit} whose exponentials {q.dtype} can "
            "hold; each pair takes its own exponential instead, which is right but several times slower",
            AttnlabWarning,
            stacklevel=2,
        )
        return q, k

    def padded(self, x: Tensor) -> Tensor:
        """Fill the channels up to whole registers; zeros add nothing to a score."""
        return torch.nn.functional.pad(x, (0, self.channels - x.shape[-1])).contiguous()

    def start(self) -> None:
        """Make room for the gradients."""
        self.da, self.db = torch.zeros_like(self.a), torch.zeros_like(self.b)
        self.dw = torch.zeros_like(self.w)
        self.sums = torch.zeros_like(self.w[..., 0])

    def inputs(self, tile: Tile) -> dict[str, Tensor]:
        """Return the features of the tile."""
        a, b, bt, w = (groups(x, tile) for x in (self.a, self.b, self.bt, self.w[:, :, None]))
        return {"a": a[:, tile.start :], "b": b, "bt": bt, "w": w}

    def sizes(self, tile: Tile) -> dict[str, int]:
        """Return the sizes of the tile; `first` is the last key its first row may see."""
        return {
            "G": tile.num_groups,
            "R": tile.num_rows,
            "K": tile.horizon,
            "C": self.channels,
            "P": self.keys,
            "first": tile.horizon - 1 if self.first is None else self.first + tile.start,
            "stride_a": self.a.stride(1),
            "stride_b": self.b.stride(1),
        }

    def power(self, tile: Tile) -> Tensor:
        """Return minkowski's p for the groups of a tile, [g 1 1]."""
        return groups(self.p, tile)

    def scores(self, tile: Tile, out: Tensor) -> None:
        native.call("forward", self.kind, {**self.inputs(tile), "s": out}, self.sizes(tile))
        scale = 1 / math.sqrt(self.shape[0][-1])
        if self.kind == "manhattan":
            out.mul_(-scale)
        elif self.kind == "euclidean":
            out.sqrt_().mul_(-scale)
        elif self.kind == "minkowski":
            out.pow_(1 / self.power(tile)).neg_()
        elif self.kind == "chebyshev":
            out.neg_()

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        factor = self.chain(tile, ds, scores)
        g, r, k, c = tile.num_groups, tile.num_rows, tile.horizon, self.channels
        da, db, dw = ds.new_empty(g, r, c), ds.new_zeros(g, k, c), ds.new_zeros(g, c)
        tensors = {**self.inputs(tile), "ds": factor, "da": da, "db": db, "dw": dw}
        native.call("backward", self.kind, tensors, self.sizes(tile))
        groups(self.da, tile)[:, tile.start : tile.stop] = da
        groups(self.db, tile)[:, :k] += db
        groups(self.dw[:, :, None], tile)[:, 0] += dw

    def chain(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> Tensor:
        """Return the gradient of the loops' sum Σ|q−k|^p (or of the additive score) from that of the score."""
        scale = 1 / math.sqrt(self.shape[0][-1])
        total = groups(self.sums[:, :, None, None], tile)[:, 0, 0]
        if self.kind.startswith("additive"):
            total += ds.sum((1, 2))
            return ds
        if self.kind == "manhattan":
            return ds.mul_(-scale)
        if self.kind == "chebyshev":
            return ds.neg_()
        assert scores is not None
        distance = scores.neg()
        is_apart = distance > 0
        if self.kind == "euclidean":
            # d(−√m/√d) = −1/(2√m√d) dm, and the loops leave out the 2 of dm = 2(q−k).
            return torch.where(is_apart, ds / distance * -(scale**2), 0)
        # s = −m^{1/p}, m = Σ|x|^p: ds/dm = −m^{1/p−1}/p, dm/dx = p|x|^{p−1}, and what p moves besides m.
        p = self.power(tile)
        logarithm = torch.where(is_apart, distance, 1).log()
        total += torch.where(is_apart, ds * distance * logarithm, 0).sum((1, 2)) / p[:, 0, 0]
        return torch.where(is_apart, -ds * torch.exp(logarithm * (1 - p)), 0)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        q, k, extra = self.shape
        da, db, dw = self.da[..., : q[-1]], self.db[..., : k[-1]], self.dw.sum(0)
        if self.kind.startswith("additive"):
            w = 4 * self.w[:, :, None, : q[-1]]
            return da * w, db * w, (self.sums.sum(0)[:, None] - 2 * dw)[:, : extra[-1]]
        if self.kind == "minkowski":
            return da, db, self.sums.sum(0)[:, None] + dw.sum(-1, keepdim=True) / self.p[0, :, 0]
        return da, db, self.w.new_zeros(extra)
