"""Any mechanism, one block of queries at a time, recomputed in the backward pass: the reference's equations with O(n)
memory. It computes user-defined stages."""

import dataclasses

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from . import reference
from .call import Call, Request

NAME = "rowwise"
FORM = "the reference on one block of queries at a time, recomputed in the backward pass"

ELEMENTS = 2**22
"""Pairs (times channels, for scores that compare vectors) per block at most."""


def refusal(request: Request) -> str | None:
    """Refuse dropout, which is drawn for the problem as a whole."""
    return "draws no attention dropout" if request.dropout else None


def _attend_block(call: Call, q: Tensor, start: int, stop: int) -> Tensor:
    """Attend with the queries start…stop alone."""
    is_cut = call.mechanism.mask.where == "before"
    # At least one key, even if no query sees it: not every stage can handle an empty row.
    horizon = max(1, call.visibility.horizon(stop)) if is_cut else call.visibility.num_keys
    rows = dataclasses.replace(
        call, q=q, k=call.k[:, :, :horizon], v=call.v[:, :, :horizon],
        visibility=call.visibility.rows(start, stop, horizon),
        positions=None if call.positions is None else call.positions.rows(start, stop, horizon),
    )  # fmt: skip
    return reference.attend(rows)


def count_rows(batch: int, num_heads: int, num_keys: int, head_dim: int) -> int:
    """Return how many queries a block holds at most."""
    return max(1, ELEMENTS // max(1, batch * num_heads * num_keys * head_dim))


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    b, h, num_queries, d = call.q.shape
    step = max(1, min(num_queries, count_rows(b, h, call.k.shape[2], d)))
    blocks = []
    for start in range(0, num_queries, step):
        stop = min(start + step, num_queries)
        blocks.append(checkpoint(_attend_block, call, call.q[:, :, start:stop], start, stop, use_reentrant=False))
    return torch.cat(blocks, 2) if blocks else call.v.new_zeros(b, h, 0, call.v.shape[3])
