"""The scores of a tile and their gradient, written into existing memory.

A matrix product computes dot-like scores, the compiled loops of pairs.cpp all others. Axes: g groups (batch rows ×
heads), r rows (queries), k keys, c channels.
"""

import math
import warnings

import torch
from torch import Tensor

from attnlab.errors import AttnlabWarning

from ..tiles import ROWS, Tile
from . import native

MANY_QUERIES = 4 * ROWS
"""From this number of queries on, sums over queries are transposed."""


def groups(x: Tensor, tile: Tile) -> Tensor:
    """Return the tile's batch rows and heads of [b h n c] as [g n c], a view."""
    return x[tile.batch, tile.heads].flatten(0, 1)


def _largest(x: Tensor) -> float:
    """Return the largest magnitude, or NaN if there is one."""
    return float(torch.stack(torch.aminmax(x)).abs().max()) if x.numel() else 0.0


def last_seen(tile: Tile, first: int | None) -> int:
    """Return the last key that a tile's first row sees; `first` is that of the problem's first row (None: all)."""
    return tile.horizon - 1 if first is None else first + tile.start


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to an accumulator that may have higher precision."""
    if total.dtype == left.dtype:
        total.baddbmm_(left, right)
    else:
        total.add_(left @ right)


class KeySums:
    """Σ wᵀ·x over the tiles of w, for every key, [b h k c].

    Over many queries the sum is transposed until the end: matrix products with long rows are up to 1.4 times as fast,
    which for few queries is less than what transposing costs.
    """

    def __init__(self, keys: Tensor, num_queries: int, dtype: torch.dtype) -> None:
        self.is_transposed = num_queries >= MANY_QUERIES
        self.total = torch.zeros_like(keys.mT if self.is_transposed else keys, dtype=dtype).contiguous()

    def add(self, tile: Tile, w: Tensor, x: Tensor) -> None:
        """Add the product of a tile's w [g r k] and its queries' x [g r c]."""
        total = groups(self.total, tile)
        if self.is_transposed:
            add_product(total[:, :, : tile.horizon], x.mT, w)
        else:
            add_product(total[:, : tile.horizon], w.mT, x)

    def compute(self) -> Tensor:
        """Return the sums."""
        return self.total.mT.contiguous() if self.is_transposed else self.total


def count_lanes(dtype: torch.dtype) -> int:
    """Return how many numbers of a dtype a register of the compiled loops holds."""
    library, _ = native.load_loops()
    return int(library.vector_bytes()) // dtype.itemsize if library is not None else 1


class DotPairs:
    """s = q·k.

    needs_scores: the backward pass needs a tile's scores again. fills: `scores` fills future keys itself.
    `scores` writes [g r k]; `accumulate` adds a tile's part to the gradients that `gradients` returns, from ds, which
    is 0 for masked pairs and may be overwritten.
    """

    needs_scores = False
    fills = False

    def __init__(self, q: Tensor, k: Tensor, accumulator: torch.dtype) -> None:
        self.q, self.k, self.accumulator = q, k, accumulator

    def is_finite(self) -> bool:
        return math.isfinite(_largest(self.q) + _largest(self.k))

    def start(self) -> None:
        self.dq = torch.empty_like(self.q)
        self.dk = KeySums(self.k, self.q.shape[2], self.accumulator)

    def inputs(self, tile: Tile) -> tuple[Tensor, Tensor]:
        """Return the queries and keys of a tile."""
        return groups(self.q, tile)[:, tile.start : tile.stop], groups(self.k, tile)[:, : tile.horizon]

    def scores(self, tile: Tile, out: Tensor, fill: float) -> None:
        q, k = self.inputs(tile)
        torch.bmm(q, k.mT, out=out)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        q, k = self.inputs(tile)
        groups(self.dq, tile)[:, tile.start : tile.stop] = torch.bmm(ds, k)
        self.dk.add(tile, ds, q)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.dq, self.dk.compute().to(self.k.dtype), self.q.new_zeros(0)


class AnglePairs(DotPairs):
    """s = 1 − 2·arccos(q·k)/π for unit q and k, so that ds/d(q·k) = 2/π / cos(s·π/2)."""

    needs_scores = True

    def scores(self, tile: Tile, out: Tensor, fill: float) -> None:
        super().scores(tile, out, fill)
        out.clamp_(-1, 1).arccos_().mul_(-2 / math.pi).add_(1)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        assert scores is not None
        is_inside = scores.abs() < 1
        slope = torch.cos(scores * (math.pi / 2)).reciprocal_().mul_(2 / math.pi)
        super().accumulate(tile, ds.mul_(slope).masked_fill_(~is_inside, 0), None)


class CompiledPairs:
    """Scores from the compiled loops. `extra` [h c] is additive's w₂, or [h 1] minkowski's p."""

    fills = True

    def __init__(self, kind: str, q: Tensor, k: Tensor, extra: Tensor, first: int | None) -> None:
        self.kind, self.first, self.sizes_of = kind, first, (q.shape[-1], extra.shape[-1])
        self.needs_scores = kind in ("minkowski", "euclidean")
        self.scale = 1 / math.sqrt(q.shape[-1]) if kind in ("manhattan", "euclidean") else 1.0
        step = count_lanes(q.dtype)
        self.channels = -(-q.shape[-1] // step) * step
        self.largest = _largest(q) + _largest(k)
        if kind == "additive":
            q, k = self.exponentials(q, k)
        self.a, self.b = self.padded(q), self.padded(k)
        self.w = self.padded(extra).expand(q.shape[0], *extra.shape[:1], self.channels).contiguous()

    def exponentials(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return e^{2q} and e^{2k}, or q and k themselves if a product of two could overflow.

        Up to half the limit a product of four cannot overflow either, and two pairs share a division.
        """
        limit = 40 if q.dtype == torch.float32 else 340
        if self.largest <= limit:
            self.kind = "additive" if self.largest <= limit / 2 else "additive_wide"
            return (2 * q).exp_(), (2 * k).exp_()
        self.kind = "additive_safe"
        warnings.warn(
            f"attnlab: additive features reach {self.largest:.3g}, and {q.dtype} holds exponentials only up to "
            f"±{limit}; each pair computes its own exponential instead, which is correct but several times slower",
            AttnlabWarning,
            stacklevel=2,
        )
        return q, k

    def padded(self, x: Tensor) -> Tensor:
        """Pad the channels to whole registers; zeros do not change a score."""
        missing = self.channels - x.shape[-1]
        return torch.nn.functional.pad(x, (0, missing)) if missing else x.contiguous()

    def is_finite(self) -> bool:
        return math.isfinite(self.largest + _largest(self.w))

    def start(self) -> None:
        self.da, self.db = torch.empty_like(self.a), torch.zeros_like(self.b)
        self.dw = torch.zeros_like(self.w)
        self.sums = torch.zeros_like(self.w[..., 0])

    def inputs(self, tile: Tile) -> dict[str, Tensor]:
        """Return the features, starting at the tile's first group and query."""
        at = (tile.batch.start, tile.heads.start)
        return {"a": self.a[at][tile.start :], "b": self.b[at], "w": self.w[at]}

    def sizes(self, tile: Tile) -> dict[str, float]:
        """Return the sizes of the tile, its strides and scale, and the last key its first row sees."""
        sizes = dict(zip("GRKC", (*tile.shape, self.channels), strict=True))
        strides = {"stride_a": self.a.stride(1), "stride_b": self.b.stride(1)}
        return {**sizes, **strides, "first": last_seen(tile, self.first), "scale": self.scale}

    def scores(self, tile: Tile, out: Tensor, fill: float) -> None:
        sizes = {**self.sizes(tile), "fill": fill}
        native.call("forward", native.KINDS[self.kind], {**self.inputs(tile), "s": out}, sizes)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        at = (tile.batch.start, tile.heads.start)
        tensors = {"da": self.da[at][tile.start :], "db": self.db[at], "dw": self.dw[at]}
        if self.kind.startswith("additive"):
            groups(self.sums[..., None], tile)[:, 0] += ds.sum((1, 2))
            tensors["ds"] = ds
        elif scores is None:
            tensors["ds"] = ds.mul_(-self.scale)
        else:
            is_apart = (scores < 0) & (scores > -torch.inf)
            distance = torch.where(is_apart, -scores, 1)
            ds.masked_fill_(~is_apart, 0).neg_()
            if self.kind == "euclidean":
                tensors["ds"] = ds.div_(distance).mul_(self.scale**2)
            else:
                tensors["ds"], tensors["s"] = ds, distance.log_()
        native.call("backward", native.KINDS[self.kind], {**self.inputs(tile), **tensors}, self.sizes(tile))

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        width, extra_width = self.sizes_of
        da, db, dw = self.da[..., :width], self.db[..., :width], self.dw.sum(0)
        if self.kind.startswith("additive"):
            return da, db, (self.sums.sum(0)[:, None] - 2 * dw)[:, :extra_width]
        if self.kind == "minkowski":
            return da, db, dw.sum(-1, keepdim=True) / self.w[0, :, :1]
        return da, db, torch.zeros_like(self.w[0, :, :extra_width])
