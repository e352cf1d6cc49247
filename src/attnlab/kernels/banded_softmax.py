"""Softmax over products in a band: torch's fused pass on each block of queries with the keys in its reach, and a
backward pass of our own, which adds to the gradients of keys in place: blocks share keys.

A block holds all keys that its queries see, so its weights are exp(s − logsumexp) and sum to 1.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.mechanisms import Positions

from . import sdpa
from .band import Band
from .call import Call, Request, register_backward
from .compat import flash_attention, softmax_backward_
from .masks import compute_pairs, drop_position_masks, list_position_masks
from .sinks import pad_width

LEAST, MOST = 16, 80
"""Queries of a block: as many as the reach within these bounds."""

MULTIPLE = 16
"""Of which the number of keys of a block is a multiple: whole registers in matrix products."""

LOG2_E = math.log2(math.e)
"""exp(x) is computed as 2 to the power of this times x: torch's exp takes up to 200 times as long if it underflows."""

NUM_PAIRS = 2**17
"""The most pairs of a thread that are computed at once: their weights and gradients take 1 MB in fp32."""


def refusal(request: Request) -> str | None:
    """Refuse what torch's fused pass on a CPU cannot compute, or what is not known from a distance and a key."""
    mechanism = request.mechanism
    stages = list_position_masks(mechanism)
    if request.device != "cpu" or request.dtype not in (torch.float32, torch.float64):
        return "computes in fp32 and fp64 on a CPU"
    if request.mask == "pairs" or not all(stage.is_by_distance for stage in stages):
        return "needs masks that depend on distances or on keys alone"
    if mechanism.score.form not in ("dot", "cosine") or mechanism.weights.has_sink:
        return "needs products without a sink"
    if mechanism.weights.has_row_factor or mechanism.weights.divide != 1:
        return "does not count what a query sees"
    rest = drop_position_masks(mechanism)
    if rest.find_stages_needing("positions"):
        return "knows no positions"
    return sdpa.refusal(dataclasses.replace(request, mechanism=rest))


def attend(call: Call, band: Band) -> Tensor | None:
    """Return weights·values, or None if the masks differ between heads."""
    q, k, scale = sdpa.choose_scale(call)
    keys = torch.arange(band.before + band.after + 1, device=q.device)[None, None]
    positions = Positions(keys[..., band.before, None], keys)
    pairs = compute_pairs(list_position_masks(call.mechanism), positions, (1, q.shape[1], 1, keys.shape[-1]))
    if pairs.shape[1] > 1:
        return None
    mask = call.visibility.mask
    out: Tensor = banded_softmax(q, k, call.v, pairs[0, 0, 0], mask, band.offset, band.before, scale)[0]
    return out


class _Block(NamedTuple):
    """Queries and keys of a block, and what is added to their scores: 0, or −∞ for a pair that may not meet.

    parts: the columns of `term` that hold −∞. has_empty: whether a query may see nothing.
    """

    rows: slice
    keys: slice
    term: Tensor
    parts: tuple[slice, ...]
    has_empty: bool


class _Problem:
    """The blocks of a call."""

    def __init__(self, q: Tensor, k: Tensor, seen: Tensor, mask: Tensor | None, offset: int, before: int) -> None:
        self.seen, self.mask, self.dtype = seen, mask, q.dtype
        self.band = Band(q.shape[2], k.shape[2], offset, before, len(seen) - 1 - before)
        self.terms: dict[tuple[int, int, int], tuple[Tensor, tuple[slice, ...], bool]] = {}

    def __iter__(self) -> Iterator[_Block]:
        """Yield the blocks in the order of their queries."""
        rows_at_once = max(LEAST, min(MOST, self.band.before + 1))
        for rows, keys in self.band.list_blocks(rows_at_once, MULTIPLE):
            shape = (rows.stop - rows.start, keys.stop - keys.start, keys.start - rows.start)
            if shape not in self.terms:  # all blocks but the first and the last ones share one
                self.terms[shape] = self._make_term(*shape)
            yield _Block(rows, keys, *self.terms[shape])

    def _make_term(self, num_rows: int, num_keys: int, ahead: int) -> tuple[Tensor, tuple[slice, ...], bool]:
        """Return what depends on distances: the key after the first of a block is `ahead` + 1 queries further."""
        steps = torch.arange(num_keys) - torch.arange(num_rows)[:, None]
        steps += ahead - self.band.offset + self.band.before
        is_near = (steps >= 0) & (steps < len(self.seen))
        is_seen = self.seen[steps.clamp(0, len(self.seen) - 1)] & is_near
        term = torch.zeros(num_rows, num_keys, dtype=self.dtype).masked_fill_(~is_seen, -torch.inf)
        return term, _find_hidden_parts(is_seen.all(0)), not bool(is_seen.any(1).all())

    def add_mask(self, block: _Block) -> Tensor:
        """Return the term with the caller's mask of keys, [b|1 h|1 r k]."""
        if self.mask is None:
            return block.term[None, None]
        return block.term.masked_fill(~self.mask[..., block.keys], -torch.inf)


def _find_hidden_parts(is_full: Tensor) -> tuple[slice, ...]:
    """Return the columns that are not seen by all queries: the first and last ones, or all of them."""
    full = is_full.nonzero()[:, 0].tolist()
    if not full or full[-1] - full[0] + 1 != len(full):
        return (slice(0, len(is_full)),)
    parts = (slice(0, full[0]), slice(full[-1] + 1, len(is_full)))
    return tuple(part for part in parts if part.start < part.stop)


@torch.library.custom_op("attnlab::banded_softmax", mutates_args=())
def banded_softmax(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, mask: Tensor | None, offset: int, before: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend; return the output and the logsumexp of the scores, [b h q].

    seen: whether a query sees the keys from `before` keys before its own on. mask: of keys, [b|1 h|1 1 k].
    """
    width = max(q.shape[3], v.shape[3])
    values = pad_width(v, width)
    q, k = pad_width(q, width), pad_width(k, width)
    out, logsumexp = v.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3])
    problem = _Problem(q, k, seen, mask, offset, before)
    for block in problem:
        rows, keys, term = block.rows, block.keys, problem.add_mask(block)
        part, total = flash_attention(q[:, :, rows], k[:, :, keys], values[:, :, keys], False, term, scale)
        if block.has_empty or mask is not None:
            # Rows that see nothing: an output of 0, and a normaliser that makes every recomputed weight 0.
            empty = (term == -torch.inf).all(-1)
            part, total = part.masked_fill(empty[..., None], 0), total.masked_fill(empty, torch.inf)
        out[:, :, rows], logsumexp[:, :, rows] = part[..., : v.shape[3]], total
    return out, logsumexp


@torch.library.custom_op("attnlab::banded_softmax_backward", mutates_args=())
def banded_softmax_backward(
    grad: Tensor, logsumexp: Tensor, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, mask: Tensor | None,
    offset: int, before: int, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k and v."""
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    problem = _Problem(q, k, seen, mask, offset, before)
    blocks = [(block, None if mask is None else problem.add_mask(block)) for block in problem]
    largest = max(block.term.numel() for block, _ in blocks)
    num_heads = max(1, torch.get_num_threads() * NUM_PAIRS // largest)
    space = q.new_empty(2, min(num_heads, q.shape[1]) * largest)
    for index in range(len(q)):
        for first in range(0, q.shape[1], num_heads):
            heads = slice(first, first + num_heads)
            inputs = [x[index, heads] for x in (grad, logsumexp, q, k, v)]
            _differentiate(inputs, [x[index, heads] for x in (dq, dk, dv)], blocks, (index, heads), space, scale)
    return dq, dk, dv


def _select_part(term: Tensor, part: tuple[int, slice]) -> Tensor:
    """Return the rows of [b|1 h|1 r k] of one sequence and some heads."""
    term = term[part[0] if len(term) > 1 else 0]
    return term[part[1]] if len(term) > 1 else term


def _differentiate(
    inputs: list[Tensor], gradients: list[Tensor], blocks: list[tuple[_Block, Tensor | None]], part: tuple[int, slice],
    space: Tensor, scale: float,
) -> None:  # fmt: skip
    """Write the gradients of some heads [g n d] of one sequence."""
    grad, logsumexp, q, k, v = inputs
    dq, dk, dv = gradients
    left, right = k.mT, v.mT
    for block, term in blocks:
        rows, keys = block.rows, block.keys
        num_rows, num_keys = block.term.shape
        w, ds = space[:, : len(q) * num_rows * num_keys].view(2, len(q), num_rows, num_keys)
        queries, slopes = q[:, rows], grad[:, rows]
        torch.baddbmm(
            logsumexp[:, rows, None], queries, left[..., keys], beta=-LOG2_E, alpha=scale * LOG2_E, out=w
        )  # fmt: skip
        if term is None:
            for columns in block.parts:
                w[..., columns] += block.term[:, columns]
        else:
            w += _select_part(term, part)
        w.exp2_()
        torch.bmm(slopes, right[..., keys], out=ds)
        softmax_backward_(ds, w)
        dv[:, keys].baddbmm_(w.mT, slopes)
        dk[:, keys].baddbmm_(ds.mT, queries, alpha=scale)
        dq[:, rows].baddbmm_(ds, k[:, keys], beta=0, alpha=scale)


@banded_softmax.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    return v.new_empty(*q.shape[:3], v.shape[3]), q.new_empty(q.shape[:3])


@banded_softmax_backward.register_fake
def _(grad: Tensor, logsumexp: Tensor, q: Tensor, k: Tensor, v: Tensor, *options: Any) -> tuple[Tensor, ...]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


register_backward(banded_softmax, banded_softmax_backward, num_tensors=5, num_options=3)
