"""Tiles for what a stage computes in its own code: pointwise weights without a tile rule, and a bias of positions.

Autograd differentiates the stage on one tile at a time, recomputed in the backward pass. A bias that depends only on
distances is computed once for every distance; a tile then copies it along its diagonals.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.mechanisms import Mechanism, Positions, PositionScheme, Score, TileRule, Weights
from attnlab.mechanisms.stage import check_result

from . import tiled
from .call import Call
from .cpu.pairs import DotPairs
from .division import as_divisor, divide, divide_values
from .failures import call_stage
from .normalise import refuse_second_derivatives
from .positions import compute_bias
from .standins import fill_standins
from .tiles import Tile
from .visibility import Visibility

ALL = slice(None)


class _Learned:
    """The learned parameters of a stage on one tile after another, and the sum of their gradients."""

    def __init__(self, values: Mapping[str, Tensor], accumulator: torch.dtype) -> None:
        self.values = values
        self.gradients = {name: torch.zeros_like(value, dtype=accumulator) for name, value in values.items()}

    def make_leaves(self, heads: slice = ALL) -> dict[str, Tensor]:
        """Return the parameters of some heads, as leaves that autograd can differentiate."""
        return {name: value[heads].detach().requires_grad_() for name, value in self.values.items()}

    def add(self, gradients: Sequence[Tensor | None], heads: slice = ALL) -> None:
        """Add gradients of some heads, in the order of the parameters."""
        for total, gradient in zip(self.gradients.values(), gradients, strict=True):
            if gradient is not None:
                total[heads] += gradient


class _DistanceBias(DotPairs):
    """s = q·k + bias[i − j]. `bias` [h q+k−1] holds the distances in falling order: row i reads it from Q−1−i on."""

    def __init__(self, q: Tensor, k: Tensor, accumulator: torch.dtype, bias: Tensor) -> None:
        super().__init__(q, k, accumulator)
        self.bias = bias.to(q.dtype).contiguous()

    def is_finite(self) -> bool:
        return super().is_finite() and bool(self.bias.isfinite().all())

    def start(self) -> None:
        super().start()
        self.dbias = torch.zeros_like(self.bias, dtype=self.accumulator)

    def scores(self, tile: Tile, out: Tensor, fill: float) -> None:
        q, k = self.inputs(tile)
        windows = self.bias[tile.heads].unfold(-1, tile.horizon, 1)
        first = self.q.shape[2] - tile.stop
        out.view(tile.by_head).copy_(windows[:, first : first + tile.stop - tile.start].flip(1))
        out.baddbmm_(q, k.mT)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        num_groups, num_rows, num_keys = tile.shape
        # Rows of this width, read with one column more, are shifted by one each: columns then hold diagonals.
        width = num_rows + num_keys
        space = ds.new_zeros(num_groups, num_rows * (width + 1))
        space[:, : num_rows * width].view(num_groups, num_rows, width)[:, :, num_rows:] = ds
        diagonals = space.view(*tile.by_head[:2], num_rows, width + 1).sum((0, 2), dtype=self.accumulator)
        first = self.q.shape[2] - tile.stop
        self.dbias[tile.heads, first : first + width - 1] += diagonals[:, 1:width]
        super().accumulate(tile, ds, scores)


class _PositionBias(DotPairs):
    """s = q·k + position_bias(positions). The stage computes all heads of a block of rows at once, for all their tiles,
    which `list_tiles` puts one after another."""

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        accumulator: torch.dtype,
        stage: Score | PositionScheme,
        positions: Positions,
        learned: _Learned,
    ) -> None:
        super().__init__(q, k, accumulator)
        self.stage, self.positions, self.learned = stage, positions, learned
        self.has_batch = max(positions.queries.shape[0], positions.keys.shape[0]) > 1
        self.block: tuple[int, int] | None = None
        self.has_finite_bias, self.is_backward = True, False

    def is_finite(self) -> bool:
        return super().is_finite() and self.has_finite_bias

    def start(self) -> None:
        super().start()
        self.is_backward = bool(self.learned.values)

    def begin_block(self, tile: Tile) -> None:
        """Compute the bias of a tile's rows, unless the tile before had the same."""
        block = (tile.start, tile.batch.start if self.has_batch else 0)
        if block == self.block:
            return
        self.end_block()
        self.block = block
        with torch.set_grad_enabled(self.is_backward):
            self.leaves = self.learned.make_leaves() if self.is_backward else dict(self.learned.values)
            self.bias = compute_bias(self.stage, select_positions(self.positions, tile), self.leaves)
        self.has_finite_bias = self.has_finite_bias and bool(self.bias.sum().isfinite())
        if self.is_backward:
            self.dbias = torch.zeros_like(self.bias, dtype=self.accumulator)

    def end_block(self) -> None:
        """Differentiate the bias of the rows whose tiles are done."""
        if self.is_backward and self.block is not None and self.bias.requires_grad:
            inputs = list(self.leaves.values())
            grad = self.dbias.to(self.bias.dtype)
            self.learned.add(torch.autograd.grad(self.bias, inputs, grad, allow_unused=True))
        self.block = None

    def select_heads(self, x: Tensor, tile: Tile) -> Tensor:
        """Return the tile's heads of [b|1 h|1 r k]."""
        return x if x.shape[1] == 1 else x[:, tile.heads]

    def scores(self, tile: Tile, out: Tensor, fill: float) -> None:
        self.begin_block(tile)
        out.view(tile.by_head).copy_(self.select_heads(self.bias.detach(), tile))
        q, k = self.inputs(tile)
        out.baddbmm_(q, k.mT)

    def accumulate(self, tile: Tile, ds: Tensor, scores: Tensor | None) -> None:
        if self.is_backward:
            dbias = self.select_heads(self.dbias, tile)
            dbias += ds.view(tile.by_head).sum_to_size(dbias.shape)
        super().accumulate(tile, ds, scores)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        self.end_block()
        return super().gradients()


def select_positions(positions: Positions, tile: Tile) -> Positions:
    """Return the positions of a tile's queries and keys."""
    queries, keys = (x if x.shape[0] == 1 else x[tile.batch] for x in (positions.queries, positions.keys))
    return Positions(queries, keys).rows(tile.start, tile.stop, tile.horizon)


@dataclass(frozen=True, eq=False)
class _Spec:
    """What determines a call besides tensors with gradients. `names` are the parameters of bias and weights."""

    mechanism: Mechanism
    visibility: Visibility
    positions: Positions | None
    row_bias: Tensor | None
    pairs: str
    has_table: bool
    names: tuple[tuple[str, ...], tuple[str, ...]]
    dropout: float
    seed: int


class _StageProblem(tiled.Problem):
    """A problem whose weights, bias or both are computed by stages."""

    def __init__(self, spec: _Spec, q: Tensor, k: Tensor, v: Tensor, extra: Tensor, *learned: Tensor) -> None:
        visibility, stage, biases = spec.visibility, spec.mechanism.weights, spec.mechanism.bias_stages
        super().__init__(
            q,
            k,
            v,
            extra,
            visibility.mask,
            spec.row_bias,
            spec.pairs,
            stage,
            visibility.causal,
            spec.dropout,
            spec.seed,
            0.0 if spec.mechanism.cap is None else spec.mechanism.cap.limit,
        )
        self.stage, self.positions = stage, spec.positions
        self.n = as_divisor(visibility.count, q.dtype)
        split = len(spec.names[0])
        self.of_bias = _Learned(dict(zip(spec.names[0], learned[:split], strict=True)), self.accumulator)
        self.of_weights = _Learned(dict(zip(spec.names[1], learned[split:], strict=True)), self.accumulator)
        if biases:
            assert isinstance(self.pairs, DotPairs)
            assert spec.positions is not None
            inputs = (self.pairs.q, self.pairs.k, self.accumulator)
            is_by_tile = not spec.has_table
            by_tile = (biases[0], spec.positions, self.of_bias)
            self.pairs = _PositionBias(*inputs, *by_tile) if is_by_tile else _DistanceBias(*inputs, extra)

    def find_rule(self, stage: Weights) -> TileRule:
        self.is_by_autograd = stage.tile_rule is None
        # The fill is replaced by stand-ins, and `weigh` calls the stage instead of `forward`.
        return stage.tile_rule or TileRule(0, lambda s: s, self.differentiate, needs_scores=True)

    def list_tiles(self) -> Iterable[Tile]:
        tiles = super().list_tiles()
        return sorted(tiles, key=lambda tile: tile.start) if isinstance(self.pairs, _PositionBias) else tiles

    def weigh(self, tile: Tile, s: Tensor, scores: Tensor | None = None) -> None:
        if not self.is_by_autograd:
            return super().weigh(tile, s, scores)
        if s.numel() == 0:
            return None
        view, inputs = s.view(tile.by_head), (s if scores is None else scores).view(tile.by_head)
        self.score(tile, s if scores is None else scores, 0)
        fill_visible(inputs, tile, self.visibility)
        n = tiled.select_groups(self.n, tile)[:, :, tile.start : tile.stop]
        needs = {}
        if "positions" in self.stage.needs and self.positions is not None:
            needs["positions"] = select_positions(self.positions, tile)
        self.tile, self.leaves = tile, self.of_weights.make_leaves(tile.heads)
        if scores is None:
            w = call_stage(self.stage, self.stage.__call__, inputs, n, self.leaves, **needs)
            check_result(self.stage, w, tile.by_head)
        else:
            self.input = inputs.detach().requires_grad_()
            with torch.enable_grad():
                self.result = w = call_stage(self.stage, self.stage.__call__, self.input, n, self.leaves, **needs)
        view.copy_(w.detach())
        tiled.fill_masked_pairs(view, tile, self.visibility, 0)
        return None

    def differentiate(self, dw: Tensor, w: Tensor, scores: Tensor | None) -> object:
        """Turn gradients of weights into gradients of scores in place, and add those of the parameters."""
        if dw.numel() == 0:
            return None
        view = dw.view(self.tile.by_head)
        tiled.fill_masked_pairs(view, self.tile, self.visibility, 0)
        if not self.result.requires_grad:  # a constant
            return dw.zero_()
        inputs = [self.input, *self.leaves.values()]
        ds, *gradients = torch.autograd.grad(self.result, inputs, view.to(self.result.dtype), allow_unused=True)
        self.of_weights.add(gradients, self.tile.heads)
        del self.result, self.input
        return dw.zero_() if ds is None else view.copy_(ds)

    def backward_all(self, grad: Tensor) -> list[Tensor]:
        """Return the gradients of q, k, v, the extra tensor and the learned parameters."""
        dq, dk, dv, dextra = self.backward(grad, grad.new_empty(0))
        if isinstance(self.pairs, _DistanceBias):
            dextra = self.pairs.dbias
        return [dq, dk, dv, dextra, *self.of_bias.gradients.values(), *self.of_weights.gradients.values()]


def fill_visible(s: Tensor, tile: Tile, visibility: Visibility) -> None:
    """Fill the masked pairs of a tile [b h r k] as the reference does, with the score of a visible pair of the row."""
    if visibility.mask is not None:
        visible = visibility.rows(tile.start, tile.stop, tile.horizon).pairs
        assert visible is not None
        visible = tiled.select_groups(visible, tile)
        s.copy_(fill_standins(s, visible, ~visible.any(-1, keepdim=True)))
    elif visibility.causal:
        # Without a mask, the first key is visible to every query that sees any.
        first, later = tiled.find_later_keys(tile, visibility)
        s[..., first:] = torch.where(later, s[..., :1], s[..., first:])


class _StageTiles(torch.autograd.Function):
    """Attention in tiles whose stages are called and differentiated on each tile."""

    @staticmethod
    def forward(ctx: Any, spec: _Spec, *tensors: Tensor) -> Tensor:
        ctx.spec = spec
        ctx.save_for_backward(*tensors)
        v = tensors[2]
        return _StageProblem(spec, *tensors).forward(v.new_empty(0)).to(v.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        tensors = ctx.saved_tensors
        gradients = _StageProblem(ctx.spec, *tensors).backward_all(grad)
        return None, *(given.to(of.dtype) for given, of in zip(gradients, tensors, strict=True))


def attend(call: Call, q: Tensor, k: Tensor, extra: Tensor | None, pairs: str) -> Tensor:
    """Attend to features q and k as `tiled.attend` does; stages are called on each tile if the mechanism needs it."""
    biases, weights = call.mechanism.bias_stages, call.mechanism.weights
    is_by_autograd = weights.tile_rule is None
    if not is_by_autograd and not biases:
        return tiled.attend(call, q, k, extra, pairs)
    v, divisor = divide_values(call)
    has_table = bool(biases) and biases[0].bias_of == "distances" and _are_consecutive(call.positions)
    of_bias = call.params_of(biases[0]) if biases and not has_table else {}
    of_weights = call.params_of(weights) if is_by_autograd else {}
    if has_table:
        extra = _tabulate(call)
    spec = _Spec(
        call.mechanism, call.visibility, call.positions, None if is_by_autograd else tiled.make_row_bias(call), pairs,
        has_table, (tuple(of_bias), tuple(of_weights)), call.dropout, call.seed,
    )  # fmt: skip
    extra = q.new_zeros(0) if extra is None else extra
    out = _StageTiles.apply(spec, q, k, v, extra, *of_bias.values(), *of_weights.values())  # type: ignore[no-untyped-call]
    return divide(out, divisor)


def _are_consecutive(positions: Positions | None) -> bool:
    """Tell whether the positions of queries, and of keys, rise by 1, with the same distances in all sequences."""
    assert positions is not None
    queries, keys = positions.queries, positions.keys
    starts = queries[..., 0] - keys[..., 0]
    return bool((starts == starts[:1]).all()) and all(
        bool((x == x[..., :1] + torch.arange(x.shape[-1], device=x.device)).all()) for x in (queries, keys)
    )


def _tabulate(call: Call) -> Tensor:
    """Return the bias of every distance of consecutive positions, in falling order, [h q+k−1]."""
    assert call.positions is not None
    stage, positions = call.mechanism.bias_stages[0], call.positions
    num_queries, num_keys = positions.queries.shape[-1], positions.keys.shape[-1]
    start = positions.queries[0, 0, 0] - positions.keys[0, 0, 0]
    distances = torch.arange(num_queries - 1, -num_keys, -1, device=start.device) + start
    bias = compute_bias(stage, Positions(distances[None, None], start.new_zeros(1, 1, 1)), call.params_of(stage))
    return bias[0, :, :, 0].expand(call.q.shape[1], -1)
