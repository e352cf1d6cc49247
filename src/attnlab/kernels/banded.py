"""Masks of limited reach: a block of queries with the keys that it can see becomes a sequence of its own, and other
kernels compute these short sequences. Time and memory grow with n·w. Softmax over products has its own loop over the
blocks (banded_softmax.py).

    queries  [ first ][ block ][ block ] … [ last ]
    keys     what each of them can see: w − 1 before a block, the block, and w − 1 after it unless causal

All blocks have the same number of keys, so that they are one view of the keys, in which neighbours overlap, and share
one mask if it depends on distances alone. The first and the last queries, which see fewer keys, are calls of their own.
"""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from attnlab.mechanisms import Positions

from . import banded_softmax
from .band import Band
from .call import Call, Request
from .masks import compute_pairs, drop_position_masks, list_position_masks
from .positions import Alignment, as_positions
from .visibility import Visibility

NAME = "banded"
FORM = "blocks of queries, each with the keys in its reach"

LEAST_KEYS, MOST_SEEN = 512, 0.75
"""The fewest keys, and the largest share of them seen by a block, with which the kernel is chosen automatically. Below
512 keys the loop over the blocks takes longer than the pairs that it skips (docs/decisions/0071)."""


def refusal(request: Request) -> str | None:
    """Refuse a mechanism without a reach, and what depends on more than the keys in reach."""
    mechanism = request.mechanism
    if request.reach is None:
        return "needs a mask with a reach, such as window(w), over consecutive positions"
    if request.causal and mechanism.causal.where != "before":
        return f"excludes masked pairs before the weights, not '{mechanism.causal}'"
    if mechanism.weights.divide != 1 and mechanism.weights.divide_at == "key":
        return f"counts what each query sees, not the keys before a key as '{mechanism.weights}' does"
    return "draws no attention dropout" if request.dropout else None


def find_no_gain(request: Request) -> str | None:
    """Return why another kernel is expected to be faster, or None."""
    band, num_keys = Band.of(request), request.num_keys
    if not band.num_blocks:
        return "has no keys to skip: every block of queries would see them all"
    if num_keys < LEAST_KEYS:
        return f"is slower below {LEAST_KEYS} keys: its loop over blocks takes longer than the pairs that it skips"
    if band.width > MOST_SEEN * num_keys:
        return (
            f"skips too few keys to be faster: a block of queries sees {band.width} of {num_keys}, and "
            f"{MOST_SEEN:.0%} is the most"
        )
    return None


def fold_request(request: Request) -> Request:
    """Return the request that the blocks make."""
    band = Band.of(request)
    return dataclasses.replace(
        request, mechanism=drop_position_masks(request.mechanism), num_queries=band.rows, num_keys=band.width,
        batch=request.batch * band.num_blocks, causal=False, mask="pairs",
    )  # fmt: skip


def attend(call: Call, attend_part: Callable[[Call], Tensor]) -> Tensor:
    """Return weights·values; `attend_part` computes a call without masks of positions."""
    alignment = call.alignment
    assert alignment is not None
    request = call.request
    band = Band.of(request, alignment.offset)
    if banded_softmax.refusal(request) is None and (whole := banded_softmax.attend(call, band)) is not None:
        return whole
    borders = [0, band.first, band.last, band.num_queries]
    sizes = [stop - start for start, stop in pairwise(borders)]
    out = call.v.new_empty(*call.q.shape[:3], call.v.shape[3])
    for start, q in zip(borders, call.q.split(sizes, 2), strict=False):
        part = out[:, :, start : start + q.shape[2]]
        if start == band.first and band.num_blocks > 1:
            blocks = part.unflatten(2, (band.num_blocks, band.rows)).transpose(1, 2)
            for index, folded in enumerate(_fold(call, q, band, alignment)):
                blocks[index] = attend_part(folded)
        elif q.shape[2]:
            part.copy_(attend_part(_cut(call, q, start, start + q.shape[2], band)))
    return out


def _cut(call: Call, q: Tensor, start: int, stop: int, band: Band) -> Call:
    """Return the call of queries start…stop with the keys that they can see."""
    keys = band.find_keys(start, stop)
    known = call.positions or as_positions(None, call.q, call.k)
    positions = Positions(known.queries[..., start:stop], known.keys[..., keys])
    mask, visibility = call.visibility.mask, call.visibility
    if mask is not None:
        mask = (mask if mask.shape[2] == 1 else mask[:, :, start:stop])[..., keys]
    num_keys, first = keys.stop - keys.start, visibility.offset + start - keys.start
    seen = Visibility(stop - start, num_keys, visibility.causal, mask, q.device, first).pairs
    return _make_part(call, q, call.k[:, :, keys], call.v[:, :, keys], positions, positions, seen)


def _fold(call: Call, queries: Tensor, band: Band, alignment: Alignment) -> Iterator[Call]:
    """Yield, for each sequence, the call whose batch holds its blocks: only then these are a view of the keys."""
    start = band.first + band.offset
    for index, (q, k, v) in enumerate(zip(*(x.split(1) for x in (queries, call.k, call.v)), strict=True)):
        k, v = (_Blocks.apply(x, start - band.before, band) for x in (k, v))  # type: ignore[no-untyped-call]
        shift = alignment.shift[index if len(alignment.shift) > 1 else 0]
        positions = _locate_blocks(start + shift, band)
        is_shared = all(stage.is_by_distance for stage in list_position_masks(call.mechanism))
        shown = Positions(positions.queries[:1], positions.keys[:1]) if is_shared else positions
        seen = shown.distances >= 0 if call.visibility.causal else None
        if call.visibility.mask is not None:
            mask = call.visibility.mask
            mask = _fold_mask(mask[index : index + 1] if len(mask) > 1 else mask, band)
            seen = mask if seen is None else mask & seen
        q = q[0].unflatten(1, (band.num_blocks, band.rows)).transpose(0, 1)
        yield _make_part(call, q, k, v, positions, shown, seen)


def _make_part(
    call: Call, q: Tensor, k: Tensor, v: Tensor, positions: Positions, shown: Positions, seen: Tensor | None
) -> Call:
    """Return a call whose visibility holds the masks at the positions `shown`, and what is seen beside them."""
    pairs = compute_pairs(list_position_masks(call.mechanism), shown, (*q.shape[:3], k.shape[2]))
    visibility = Visibility(q.shape[2], k.shape[2], False, pairs if seen is None else pairs & seen, q.device)
    mechanism = drop_position_masks(call.mechanism)
    needed = positions if mechanism.find_stages_needing("positions") else None
    return dataclasses.replace(
        call, mechanism=mechanism, q=q, k=k, v=v, visibility=visibility, positions=needed
    )  # fmt: skip


def _locate_blocks(start: Tensor, band: Band) -> Positions:
    """Return the positions of the blocks' queries [blocks 1 rows] and keys [blocks 1 width]."""
    starts = start.reshape(1, 1, 1) + torch.arange(band.num_blocks, device=start.device)[:, None, None] * band.rows
    steps = torch.arange(-band.before, band.rows + band.after, device=start.device)
    return Positions(starts + steps[band.before : band.before + band.rows], starts + steps)


def _fold_mask(mask: Tensor, band: Band) -> Tensor:
    """Return what a mask [1 h|1 q|1 k] shows of each block's keys, [blocks h|1 rows|1 width]."""
    start = band.first + band.offset - band.before
    if mask.shape[2] == 1:
        stop = start + (band.num_blocks - 1) * band.rows + band.width
        return mask[0, ..., start:stop].unfold(-1, band.width, band.rows).permute(2, 0, 1, 3)
    rows = mask[0, :, band.first : band.last].unflatten(1, (band.num_blocks, band.rows))
    steps = (start + index * band.rows for index in range(band.num_blocks))
    return torch.stack([rows[:, index, :, step : step + band.width] for index, step in enumerate(steps)])


class _Blocks(torch.autograd.Function):
    """The keys [1 h k d] from `start` on as overlapping blocks [blocks h width d], a view.

    torch's own backward pass of `unfold` is slower than adding the gradients of one block after another.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, start: int, band: Band) -> Tensor:
        ctx.start, ctx.band, ctx.shape = start, band, x.shape
        x = x if x.stride(-1) == 1 else x.contiguous()
        stop = start + (band.num_blocks - 1) * band.rows + band.width
        return x[0, :, start:stop].unfold(1, band.width, band.rows).permute(1, 0, 3, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        total = grad.new_zeros(ctx.shape)
        for index, block in enumerate(grad):
            start = ctx.start + index * ctx.band.rows
            total[0, :, start : start + ctx.band.width] += block
        return total, None, None
