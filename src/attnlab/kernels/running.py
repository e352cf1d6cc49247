"""Linear attention as a running sum, one span of tokens at a time: what a span needs stays in the cache, and only the
results are written out. Opaque to torch, so that a caller can be compiled.

    out_i = f_i · q̂_i · (S₀ + Σ_j k̂_jᵀ v_j)        over all j, or causally over j ≤ i

A causal span is cut into chunks: pairs are formed within a chunk, and the chunks before it enter as one state.
q̂ and k̂ are q and k, or with `unit` the unit vectors in their direction; f [g n 1] is a constant, None is 1.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .call import register_backward

CHUNK = 64
"""Tokens per chunk."""

TOKENS = 2048
"""Tokens processed at once, of one group or of several short ones."""


def blocks(num_groups: int, num_tokens: int) -> Iterator[slice]:
    """Yield the groups that are processed together."""
    step = max(1, TOKENS // max(1, num_tokens))
    for start in range(0, num_groups, step):
        yield slice(start, min(start + step, num_groups))


def spans(num_tokens: int) -> Iterator[slice]:
    """Yield the spans of tokens that are processed at once."""
    for start in range(0, num_tokens, TOKENS):
        yield slice(start, min(start + TOKENS, num_tokens))


class Tokens:
    """q or k [g n d], span by span as it enters the sums: as unit vectors if `unit`, times a factor per row."""

    def __init__(self, x: Tensor, unit: bool, factor: Tensor | None) -> None:
        self.x, self.unit, self.factor = x, unit, factor

    def measure(self, span: slice) -> tuple[Tensor | None, Tensor | None]:
        """Return 1/‖x‖ of a span if `unit`, and all that its rows are multiplied with; None is 1."""
        factor = None if self.factor is None else self.factor[:, span]
        if not self.unit:
            return None, factor
        norm = torch.linalg.vector_norm(self.x[:, span], dim=-1, keepdim=True)
        inverse = norm.masked_fill_(norm == 0, 1).reciprocal_()
        return inverse, inverse if factor is None else inverse * factor

    def __getitem__(self, span: slice) -> Tensor:
        _, scale = self.measure(span)
        return self.x[:, span] if scale is None else self.x[:, span] * scale

    def convert_gradient(self, grad: Tensor, span: slice) -> Tensor:
        """Turn the gradient of the vectors that entered the sums into that of x, in place."""
        inverse, scale = self.measure(span)
        if inverse is not None:
            # d(x/‖x‖) = (g − x̂ (x̂·g)) / ‖x‖
            direction = self.x[:, span] * inverse
            along = (direction * grad).sum(-1, keepdim=True)
            grad.addcmul_(direction, along, value=-1)
        return grad if scale is None else grad.mul_(scale)


def _make_tokens(q: Tensor, k: Tensor, factor: Tensor | None, unit: bool, block: slice) -> tuple[Tokens, Tokens]:
    """Return the queries and keys of some groups."""
    factor = None if factor is None else factor[block]
    return Tokens(q[block], unit, factor), Tokens(k[block], unit, None)


def _chunks(x: Tensor) -> Tensor:
    """Return a span [g n d] as chunks [g m CHUNK d], padded with zeros."""
    missing = -x.shape[1] % CHUNK
    x = functional.pad(x, (0, 0, 0, missing)) if missing else x
    return x.reshape(x.shape[0], -1, CHUNK, x.shape[2])


def _join_chunks(x: Tensor, span: slice) -> Tensor:
    return x.flatten(1, 2)[:, : span.stop - span.start]


def _states(products: Tensor, state: Tensor, is_before: bool) -> Tensor:
    """Return the state of each chunk, the sum over the chunks before (or after) it, and add all chunks to `state`."""
    num_chunks = products.shape[1]
    others = torch.ones(num_chunks, num_chunks, dtype=products.dtype, device=products.device)
    others = others.tril_(-1) if is_before else others.triu_(1)
    sums = (others @ products.flatten(2)).view(products.shape).add_(state[:, None])
    state.add_(products.sum(1))
    return sums


@torch.library.custom_op("attnlab::running", mutates_args=())
def running(
    q: Tensor, k: Tensor, v: Tensor, state: Tensor, factor: Tensor | None, unit: bool, causal: bool
) -> tuple[Tensor, Tensor]:
    """Sum over all keys, or over those up to each query; return this and the last state. [g n d], [g n e], [g d e]."""
    out, total = v.new_empty(*q.shape[:2], v.shape[2]), state.clone()
    for block in blocks(q.shape[0], max(q.shape[1], k.shape[1])):
        queries, keys = _make_tokens(q, k, factor, unit, block)
        forward = _causal_forward if causal else _whole_forward
        forward(queries, keys, v[block], total[block], out[block])
    return out, total


def _whole_forward(queries: Tokens, keys: Tokens, v: Tensor, total: Tensor, out: Tensor) -> None:
    for span in spans(v.shape[1]):
        total.baddbmm_(keys[span].mT, v[:, span])
    for span in spans(out.shape[1]):
        torch.bmm(queries[span], total, out=out[:, span])


def _causal_forward(queries: Tokens, keys: Tokens, v: Tensor, total: Tensor, out: Tensor) -> None:
    """A query sees the chunks before its own as one state, and the pairs of its own chunk."""
    for span in spans(out.shape[1]):
        qc, kc, vc = (_chunks(x) for x in (queries[span], keys[span], v[:, span]))
        past = _states(kc.mT @ vc, total, is_before=True)
        part = (qc @ kc.mT).tril_() @ vc
        out[:, span] = _join_chunks(part.add_(qc @ past), span)


@torch.library.custom_op("attnlab::running_backward", mutates_args=())
def running_backward(
    grad: Tensor, total: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor, factor: Tensor | None,
    unit: bool, causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k, v and the state."""
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    later = torch.zeros_like(state)
    backward = _causal_backward if causal else _whole_backward
    for block in blocks(q.shape[0], max(q.shape[1], k.shape[1])):
        queries, keys = _make_tokens(q, k, factor, unit, block)
        to = (dq[block], dk[block], dv[block])
        first = state[block].clone() if causal else total[block]
        backward(grad[block], queries, keys, v[block], (first, later[block]), to)
    return dq, dk, dv, later


States = tuple[Tensor, Tensor]
Gradients = tuple[Tensor, Tensor, Tensor]


def _whole_backward(grad: Tensor, queries: Tokens, keys: Tokens, v: Tensor, ends: States, to: Gradients) -> None:
    (total, later), (dq, dk, dv) = ends, to
    for span in spans(grad.shape[1]):
        queries.convert_gradient(torch.bmm(grad[:, span], total.mT, out=dq[:, span]), span)
        later.baddbmm_(queries[span].mT, grad[:, span])
    for span in spans(v.shape[1]):
        keys.convert_gradient(torch.bmm(v[:, span], later.mT, out=dk[:, span]), span)
        torch.bmm(keys[span], later, out=dv[:, span])


def _causal_backward(grad: Tensor, queries: Tokens, keys: Tokens, v: Tensor, ends: States, to: Gradients) -> None:
    """Go forward over queries with the state of earlier keys, then backward over keys with that of later queries."""
    (total, later), (dq, dk, dv) = ends, to
    for span in spans(grad.shape[1]):
        kc, vc, gc = (_chunks(x) for x in (keys[span], v[:, span], grad[:, span]))
        past = _states(kc.mT @ vc, total, is_before=True)
        part = (gc @ vc.mT).tril_() @ kc
        dq[:, span] = queries.convert_gradient(_join_chunks(part.add_(gc @ past.mT), span), span)
    for span in reversed(list(spans(grad.shape[1]))):
        qc, kc, vc, gc = (_chunks(x) for x in (queries[span], keys[span], v[:, span], grad[:, span]))
        ahead = _states(qc.mT @ gc, later, is_before=False)
        part = (gc @ vc.mT).tril_().mT @ qc
        dk[:, span] = keys.convert_gradient(_join_chunks(part.add_(vc @ ahead.mT), span), span)
        part = (qc @ kc.mT).tril_().mT @ gc
        dv[:, span] = _join_chunks(part.add_(kc @ ahead), span)


@running.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, state: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    return v.new_empty(*q.shape[:2], v.shape[2]), state.new_empty(state.shape)


@running_backward.register_fake
def _(grad: Tensor, total: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor, *options: Any) -> tuple[Tensor, ...]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), state.new_empty(state.shape)


register_backward(running, running_backward, num_tensors=5, num_options=2)
