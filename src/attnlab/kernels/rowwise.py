"""Any mechanism, one block of queries at a time, recomputed in the backward pass: the reference's equations with O(n)
memory. It computes user-defined stages that declare nothing."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attnlab.machine import cache_bytes
from attnlab.mechanisms import LayerInput, Positions

from . import reference
from .call import Call, Request
from .compat import CountResults, mark_constant
from .decay import Decay
from .normalise import refuse_second_derivatives

NAME = "rowwise"
FORM = "the reference on one block of queries at a time, recomputed in the backward pass"

ELEMENTS = 2**19
"""Pairs (times channels, for scores that form a vector for each pair) per block at most."""

LEAST = 2**18
"""The pairs of a block on a machine with small caches: fewer would mean more calls than arithmetic."""

BYTES = 32
"""The memory that a block takes for each pair: about eight tensors of fp32, between cache and backward pass."""

ROWS = 64
"""Queries of a block below which a batch is split instead, unless a block holds half of the queries."""

SAMPLE = 4
"""The queries with which a score is tried, to count the numbers it forms for each pair."""


Cut = tuple[slice, slice]
"""The sequences and the queries of a block."""


def refusal(request: Request) -> str | None:
    """Refuse dropout, which is drawn for the problem as a whole."""
    return "draws no attention dropout" if request.dropout else None


@mark_constant  # torch.compile cannot trace reading the sizes of caches
def block_size() -> int:
    """Return how many pairs a block holds at most, so that it stays in the largest cache of this machine."""
    return _find_block_size()


@functools.cache
def _find_block_size() -> int:
    sizes = [cache_bytes(level) or 0 for level in ("L2", "L3")]
    fitting = max(sizes) // BYTES or ELEMENTS
    return max(LEAST, min(ELEMENTS, fitting))


def count_rows(batch: int, num_heads: int, num_keys: int, channels: int = 1) -> int:
    """Return how many queries of a batch a block holds at most."""
    return max(1, block_size() // max(1, batch * num_heads * num_keys * channels))


def _cut(batch: int, num_heads: int, num_queries: int, num_keys: int, channels: int) -> Iterator[Cut]:
    """Yield the sequences and the queries of each block."""
    per_sequence = ROWS * num_heads * num_keys * channels
    num_rows = count_rows(batch, num_heads, num_keys, channels)
    is_split_by_rows = num_rows >= min(ROWS, num_queries // 2)
    step = batch if is_split_by_rows else max(1, min(batch, block_size() // max(1, per_sequence)))
    num_rows = count_rows(step, num_heads, num_keys, channels)
    for first in range(0, batch, step):
        for start in range(0, num_queries, num_rows):
            yield slice(first, min(first + step, batch)), slice(start, min(start + num_rows, num_queries))


def _count_channels(call: Call) -> int:
    """Return how many numbers the score forms for each pair, 1 for a product of matrices, by trying it on a sample."""
    score, num_keys = call.mechanism.score, min(call.k.shape[2], 4 * call.q.shape[3])
    is_per_channel = call.decay is not None and call.decay.keys.shape[-1] > 1
    if torch.compiler.is_compiling() or call.q.shape[2] < SAMPLE or is_per_channel:
        return call.q.shape[3]
    counts = []
    for num_rows in (SAMPLE // 2, SAMPLE):
        batch, rows = slice(0, 1), slice(0, num_rows)
        part = _make_block(call, _take(_list_tensors(call), batch, rows, num_keys), batch, rows)
        with torch.no_grad(), CountResults() as results:
            score(part.q, part.k, part.params_of(score), **part.gather_needs(score, None))
        counts.append(results.counts)
    if len(counts[0]) != len(counts[1]):
        return call.q.shape[3]
    # What has numbers for each pair grows with the queries, and by more than the queries themselves.
    growth = max((more - less for less, more in zip(*counts, strict=True)), default=0)
    return max(1, growth // (call.q.shape[1] * num_keys * SAMPLE // 2))


def _list_tensors(call: Call) -> list[Tensor]:
    """Return what has a gradient: q, k, v, the decay and the layer's input at queries and keys, and the parameters."""
    nothing = call.q.new_zeros(1, 1, 0, 1)
    decay = (nothing, nothing) if call.decay is None else (call.decay.queries, call.decay.keys)
    x = (nothing, nothing) if call.x is None else (call.x.queries[:, None], call.x.keys[:, None])
    return [call.q, call.k, call.v, *decay, *x, *call.parameters.values()]


def _take(tensors: Sequence[Tensor], batch: slice, rows: slice, horizon: int) -> list[Tensor]:
    """Return the part of what `_list_tensors` lists that a block needs, as views."""
    cuts = (rows, slice(horizon), slice(horizon), rows, slice(horizon), rows, slice(horizon))
    parts = [(x if len(x) == 1 else x[batch])[:, :, cut] for x, cut in zip(tensors, cuts, strict=False)]
    return [*parts, *tensors[len(cuts) :]]


def _make_block(call: Call, tensors: Sequence[Tensor], batch: slice, rows: slice) -> Call:
    """Return the call of one block, whose tensors `_take` has cut."""

    def select(x: Tensor) -> Tensor:
        return x if x.shape[0] == 1 else x[batch]

    q, k, v, decay_q, decay_k, x_q, x_k, *learned = tensors
    visibility, positions = call.visibility.rows(rows.start, rows.stop, k.shape[2]), call.positions
    if visibility.mask is not None:
        visibility = dataclasses.replace(visibility, mask=select(visibility.mask))
    if positions is not None:
        positions = Positions(select(positions.queries), select(positions.keys))
        positions = positions.rows(rows.start, rows.stop, k.shape[2])
    parameters = dict(zip(call.parameters, learned, strict=True))
    return dataclasses.replace(
        call, q=q, k=k, v=v, parameters=parameters, visibility=visibility, positions=positions,
        decay=None if call.decay is None else Decay(decay_q, decay_k),
        x=None if call.x is None else LayerInput(x_q[:, 0], x_k[:, 0]),
    )  # fmt: skip


def _find_horizon(call: Call, rows: slice) -> int:
    """Return how many keys these queries need."""
    is_cut = call.mechanism.causal.where == "before"
    # At least one key, even if no query sees it: not every stage can handle an empty row.
    return max(1, call.visibility.horizon(rows.stop)) if is_cut else call.visibility.num_keys


def _attend_block(call: Call, batch: slice, rows: slice, *tensors: Tensor) -> Tensor:
    return reference.attend(_make_block(call, tensors, batch, rows))


class _Blocks(torch.autograd.Function):
    """Attention block by block. The backward pass computes each block again and adds its gradients in place."""

    @staticmethod
    def forward(ctx: Any, call: Call, cuts: Sequence[Cut], *tensors: Tensor) -> Tensor:
        ctx.call, ctx.cuts = call, cuts
        ctx.save_for_backward(*tensors)
        out = call.v.new_empty(*call.q.shape[:3], call.v.shape[3])
        for batch, rows in cuts:
            out[batch, :, rows] = _attend_block(
                call, batch, rows, *_take(tensors, batch, rows, _find_horizon(call, rows))
            )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        call, tensors = ctx.call, ctx.saved_tensors
        totals = [torch.zeros_like(x) for x in tensors]
        for batch, rows in ctx.cuts:
            horizon = _find_horizon(call, rows)
            leaves = [x.detach().requires_grad_() for x in _take(tensors, batch, rows, horizon)]
            with torch.enable_grad():
                out = _attend_block(call, batch, rows, *leaves)
            gradients = torch.autograd.grad(out, leaves, grad[batch, :, rows], allow_unused=True)
            for total, gradient in zip(_take(totals, batch, rows, horizon), gradients, strict=True):
                if gradient is not None:
                    total += gradient
        return None, None, *totals


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    (b, h, num_queries, d), num_keys = call.q.shape, call.k.shape[2]
    is_small = b * h * num_queries * num_keys * d <= block_size()
    cuts = list(_cut(b, h, num_queries, num_keys, d if is_small else _count_channels(call)))
    if len(cuts) <= 1:
        return reference.attend(call)
    if not torch.compiler.is_compiling():
        return _Blocks.apply(call, cuts, *_list_tensors(call))  # type: ignore[no-any-return, no-untyped-call]
    out = call.v.new_empty(b, h, num_queries, call.v.shape[3])
    for batch, rows in cuts:
        tensors = _take(_list_tensors(call), batch, rows, _find_horizon(call, rows))
        out[batch, :, rows] = checkpoint(_attend_block, call, batch, rows, *tensors, use_reentrant=False)
    return out
