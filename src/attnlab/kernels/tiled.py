"""One tile at a time, forward and backward with recomputation: scores, weights and their gradients occupy two or three
buffers of a tile's size, and no tensor of size queries × keys is kept.

Both passes are custom operators, so callers work with torch.compile.
"""

import functools
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from attnlab.mechanisms import REGISTRY, Mechanism, TileRule, Weights

from . import compat
from .call import Call, Request, at_least_float, register_backward
from .cpu import native
from .cpu.pairs import AnglePairs, CompiledPairs, DotPairs, KeySums, groups, last_seen
from .division import as_divisor, divide, divide_values, refuse_key_division, refuse_sum_with_dropout
from .dropout import keep_tile, scale
from .masks import refuse_row_masks
from .tiles import Tile, Tiling
from .visibility import Visibility

LOWEST = -1e30
"""The score of a masked pair in the compiled loops, which do not handle infinities: its weight is 0."""

MAX_STORED_WEIGHTS = 2**21
"""The most weights (8 MB) that are stored for the backward pass instead of recomputed, for scores in `STORED_FORMS`."""

STORED_FORMS = ("additive", "manhattan", "chebyshev")
"""The forms of scores whose weights are stored: expensive ones whose backward pass does not need the scores."""


class Problem:
    """The tensors of one call, cut into tiles, with the work space that all tiles share."""

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, extra: Tensor, mask: Tensor | None, bias: Tensor | None,
        pairs: str, stage: Weights, causal: bool, dropout: float, seed: int, cap: float,
    ) -> None:  # fmt: skip
        rule = self.find_rule(stage)
        self.rule, self.bias, self.dropout, self.seed, self.cap = rule, bias, dropout, seed, cap
        self.rule_backward = compat.softmax_backward_ if stage.is_softmax else rule.backward
        # A call that autograd differentiates masks its pairs itself.
        self.fills_scores = stage.tile_rule is not None and math.isfinite(rule.fill)
        self.accumulator = accumulator = at_least_float(q.dtype)
        is_product = pairs in ("dot", "angle")
        self.dtype = q.dtype if is_product else accumulator
        q, k, self.v, extra = (x.to(self.dtype).contiguous() for x in (q, k, v, extra))
        self.visibility = Visibility(q.shape[2], k.shape[2], causal, mask, q.device)
        self.empty = self.visibility.empty_rows
        self.tiling = Tiling(q.shape[0], q.shape[1], q.shape[2], k.shape[2], causal)
        self.first = self.visibility.offset if causal else None
        self.pairs: DotPairs | CompiledPairs
        if is_product:
            self.pairs = (DotPairs if pairs == "dot" else AnglePairs)(q, k, accumulator)
        else:
            self.pairs = CompiledPairs(pairs, q, k, extra, self.first)
        # Plain attention with dropout must not wait for a compiler; torch's softmax is only a few percent slower.
        has_loop = rule.loop is not None and not (is_product and stage.is_softmax)
        may_compile = has_loop and bias is None and self.dtype == accumulator and q.device.type == "cpu"
        self.loop = rule.loop if may_compile and native.explain_missing() is None else None
        if may_compile and self.loop is None:
            native.warn_missing()

    def find_rule(self, stage: Weights) -> TileRule:
        """Return how scores become weights."""
        assert stage.tile_rule is not None
        return stage.tile_rule

    def list_tiles(self) -> Iterable[Tile]:
        """Return the tiles in the order in which they are computed."""
        return self.tiling

    def buffer(self) -> Tensor:
        """Return a new work space for the largest tile."""
        return self.v.new_empty(self.tiling.largest)

    def weigh(self, tile: Tile, s: Tensor, scores: Tensor | None = None) -> None:
        """Write a tile's weights into s, and its scores into `scores` unless that is None."""
        self.score(tile, s, self.rule.fill)
        if scores is not None:
            scores.copy_(s)
        view = s.view(tile.by_head)
        if self.loop is not None:
            fill_masked_pairs(view, tile, self.visibility, LOWEST, skips_causal=True)
            native.normalise(self.loop, s, last_seen(tile, self.first))
        else:
            is_filled = self.pairs.fills and not self.cap
            fill_masked_pairs(view, tile, self.visibility, self.rule.fill, skips_causal=is_filled)
            if self.bias is not None:
                view.add_(select_groups(self.bias, tile)[:, :, tile.start : tile.stop])
            self.rule.forward(s)
        if self.empty is not None:
            view.masked_fill_(select_groups(self.empty, tile)[:, :, tile.start : tile.stop], 0)

    def show_scores(self, tile: Tile, scores: Tensor | None) -> Tensor | None:
        """Return the scores that `rule.backward` gets: masked pairs have `fill`, if it is finite."""
        if scores is None or not self.rule.needs_scores or not self.fills_scores:
            return scores
        shown = scores.clone()
        fill_masked_pairs(shown.view(tile.by_head), tile, self.visibility, self.rule.fill)
        return shown

    def score(self, tile: Tile, s: Tensor, fill: float) -> None:
        """Write a tile's scores into s, capped; pairs that the causal rule masks have any finite score, or `fill`."""
        self.pairs.scores(tile, s, 0.0 if self.cap else fill)
        if self.cap:
            s.div_(self.cap).tanh_().mul_(self.cap)

    def drop(self, tile: Tile) -> Tensor:
        """Return the factors of dropout for the tile's weights."""
        return keep_tile(tile, self.seed, self.dropout, self.v.dtype).to(self.v.device).mul_(scale(self.dropout))

    def forward(self, kept: Tensor) -> Tensor:
        """Return weights·values; write the weights into `kept` unless it is empty."""
        out = self.v.new_empty(*self.v.shape[:2], self.visibility.num_queries, self.v.shape[3])
        space, at = self.buffer() if kept.numel() == 0 else kept, 0
        for tile in self.list_tiles():
            w = _take_tile(space, tile, at)
            self.weigh(tile, w)
            at += w.numel() if kept.numel() else 0
            w = w * self.drop(tile) if self.dropout else w
            groups(out, tile)[:, tile.start : tile.stop] = w @ groups(self.v, tile)[:, : tile.horizon]
        # The compiled loops do not handle NaN and infinity and could hide them, so the whole output becomes NaN.
        is_compiled = self.loop is not None or isinstance(self.pairs, CompiledPairs)
        return out.fill_(torch.nan) if is_compiled and not self.pairs.is_finite() else out

    def backward(self, grad: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of q, k, v and the extra parameter."""
        grad = grad.to(self.dtype).contiguous()
        dv = KeySums(self.v, self.visibility.num_queries, self.accumulator)
        self.pairs.start()
        space, second, at = self.buffer() if kept.numel() == 0 else kept, self.buffer(), 0
        third = self.buffer() if self.pairs.needs_scores or self.rule.needs_scores or self.cap else None
        for tile in self.list_tiles():
            w, dw = _take_tile(space, tile, at), _take_tile(second, tile)
            scores = None if third is None else _take_tile(third, tile)
            if kept.numel() == 0:
                self.weigh(tile, w, scores)
            else:
                at += w.numel()
            g, v = groups(grad, tile)[:, tile.start : tile.stop], groups(self.v, tile)[:, : tile.horizon]
            torch.bmm(g, v.mT, out=dw)
            drop = self.drop(tile) if self.dropout else None
            dv.add(tile, w if drop is None else w * drop, g)
            self.rule_backward(dw if drop is None else dw.mul_(drop), w, self.show_scores(tile, scores))
            if self.rule.fill == 0 or self.rule.needs_scores:
                fill_masked_pairs(dw.view(tile.by_head), tile, self.visibility, 0)
            if self.cap and scores is not None:  # d(c·tanh(s/c)) = 1 − tanh²
                dw.mul_(scores.div_(self.cap).square_().neg_().add_(1))
            self.pairs.accumulate(tile, dw, scores if self.pairs.needs_scores else None)
        dq, dk, dextra = self.pairs.gradients()
        return dq, dk, dv.compute(), dextra


def _take_tile(space: Tensor, tile: Tile, at: int = 0) -> Tensor:
    """Return the part of a work space, starting at `at`, that holds a tile, [g r k]."""
    return space[at : at + tile.num_pairs].view(tile.shape)


def select_groups(x: Tensor, tile: Tile) -> Tensor:
    """Return the tile's batch rows and heads of [b|1 h|1 …]."""
    x = x if x.shape[0] == 1 else x[tile.batch]
    return x if x.shape[1] == 1 else x[:, tile.heads]


def fill_masked_pairs(s: Tensor, tile: Tile, visibility: Visibility, fill: float, skips_causal: bool = False) -> None:
    """Fill the masked pairs of a tile [b h r k]; the causal rule affects only its last keys."""
    if visibility.causal and not skips_causal:
        first, later = find_later_keys(tile, visibility)
        s[..., first:].masked_fill_(later, fill)
    if visibility.mask is not None:
        mask = select_groups(visibility.mask, tile)
        mask = mask if mask.shape[2] == 1 else mask[:, :, tile.start : tile.stop]
        s.masked_fill_(~mask[..., : tile.horizon], fill)


def find_later_keys(tile: Tile, visibility: Visibility) -> tuple[int, Tensor]:
    """Return the first key that a query of the tile may not see, and which keys from there on are later, [r k]."""
    first = tile.start + visibility.offset + 1
    corner = _later_keys(tile.stop - tile.start, tile.horizon - first, visibility.device)
    return max(0, first), corner[:, max(0, -first) :]


@functools.lru_cache(maxsize=16)
def _later_keys(num_rows: int, num_keys: int, device: torch.device) -> Tensor:
    """Return a mask [r k], True for keys after each query; key 0 is the one after the first query."""
    return torch.ones(num_rows, max(0, num_keys), dtype=torch.bool, device=device).triu_()


@torch.library.custom_op("attnlab::tiled", mutates_args=())
def tiled(
    q: Tensor, k: Tensor, v: Tensor, extra: Tensor, mask: Tensor | None, bias: Tensor | None,
    pairs: str, weights: str, causal: bool, dropout: float, seed: int, cap: float, num_kept: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attend with these pair scores and this weights stage, as written in a line; return the output and kept weights.

    A custom operator takes text, not stages.
    """
    problem = Problem(q, k, v, extra, mask, bias, pairs, _parse_weights(weights), causal, dropout, seed, cap)
    kept = v.new_empty(num_kept, dtype=at_least_float(v.dtype))
    return problem.forward(kept).to(v.dtype), kept


@torch.library.custom_op("attnlab::tiled_backward", mutates_args=())
def tiled_backward(
    grad: Tensor, kept: Tensor, q: Tensor, k: Tensor, v: Tensor, extra: Tensor, mask: Tensor | None,
    bias: Tensor | None, pairs: str, weights: str, causal: bool, dropout: float, seed: int, cap: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k, v and extra."""
    problem = Problem(q, k, v, extra, mask, bias, pairs, _parse_weights(weights), causal, dropout, seed, cap)
    gradients = zip(problem.backward(grad, kept), (q, k, v, extra), strict=True)
    return tuple(gradient.to(x.dtype).contiguous() for gradient, x in gradients)  # type: ignore[return-value]


@tiled.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, extra: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return v.new_empty(*q.shape[:3], v.shape[3]), v.new_empty(rest[-1], dtype=at_least_float(v.dtype))


@tiled_backward.register_fake
def _(grad: Tensor, kept: Tensor, q: Tensor, k: Tensor, v: Tensor, extra: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), extra.new_empty(extra.shape)


register_backward(tiled, tiled_backward, num_tensors=6, num_options=6)


def stores_weights(mechanism: Mechanism, num_pairs: int) -> bool:
    """Tell whether the weights are stored for the backward pass."""
    rule = mechanism.weights.tile_rule
    is_kept = rule is not None and not rule.needs_scores and mechanism.cap is None
    return mechanism.score.form in STORED_FORMS and is_kept and num_pairs <= MAX_STORED_WEIGHTS


def _parse_weights(line: str) -> Weights:
    # The class is part of the cache's key, since a user may define a stage again under the same name.
    return _parse_weights_once(line, REGISTRY[line.partition("(")[0]])


@functools.lru_cache(maxsize=256)
def _parse_weights_once(line: str, cls: type) -> Weights:
    return Mechanism.parse(f"dot | {line}").weights


def make_row_bias(call: Call) -> Tensor | None:
    """Return what is added to the scores of each query before the tile rule, [b|1 h|1 q 1], or None."""
    n = as_divisor(call.visibility.count, call.q.dtype)
    bias = call.mechanism.weights.row_bias(n)
    return None if bias is None else torch.as_tensor(bias, dtype=n.dtype, device=n.device).expand_as(n).contiguous()


def attend(call: Call, q: Tensor, k: Tensor, extra: Tensor | None, pairs: str) -> Tensor:
    """Attend to features q and k with the pair scores named `pairs`, and the call's weights, divisor and dropout."""
    mechanism, visibility = call.mechanism, call.visibility
    v, divisor = divide_values(call)
    bias = make_row_bias(call)
    extra = q.new_zeros(0) if extra is None else extra
    num_pairs = q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]
    num_kept = num_pairs if torch.is_grad_enabled() and stores_weights(mechanism, num_pairs) else 0
    cap = 0.0 if mechanism.cap is None else mechanism.cap.limit
    options = (pairs, mechanism.weights_line, visibility.causal, call.dropout, call.seed, cap, num_kept)
    out, _ = tiled(q, k, v, extra, visibility.mask, bias, *options)
    return divide(out, divisor)


def refusal(request: Request) -> str | None:
    """Return why the weights of a mechanism cannot be computed tile by tile, or None."""
    stage, mask = request.mechanism.weights, request.mechanism.causal
    is_by_autograd = stage.tile_rule is None and stage.pointwise and "visible" not in stage.needs
    if not is_by_autograd and (stage.tile_rule is None or REGISTRY.get(stage.name) is not type(stage)):
        return f"has no tile-wise gradient for '{stage}'"
    if (is_by_autograd or request.mechanism.bias_stages) and torch.compiler.is_compiling():
        return "calls stages inside its backward pass, which torch.compile cannot trace"
    # Tiles give masked pairs weight 0, which is right for these masks only.
    has_no_weight = mask.where == "before" or (mask.where == "after" and stage.pointwise) or stage.keeps_zero
    if request.causal and not has_no_weight:
        return f"excludes masked pairs before the weights; '{mask}' over '{stage.name}' does not"
    return refuse_row_masks(request) or refuse_key_division(request) or refuse_sum_with_dropout(request)
