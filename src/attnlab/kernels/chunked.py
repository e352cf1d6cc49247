"""Causal linear attention by chunks: within a chunk the pairs are formed, the chunks before it come in as one state.

    out_c = tril(q_c k_cᵀ) v_c + q_c S_c        S_c = S₀ + Σ_{b<c} k_bᵀ v_b

Chunks are taken a few at a time, so that all of it stays in the cache. Opaque to torch, so a caller may be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .call import at_least_float

CHUNK = 64
"""Tokens a chunk."""

TOGETHER = 8
"""Chunks taken together."""


def spans(num_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of tokens that are taken together."""
    for start in range(0, num_tokens, CHUNK * TOGETHER):
        yield start, min(start + CHUNK * TOGETHER, num_tokens)


def cut(x: Tensor, start: int, stop: int) -> Tensor:
    """Return tokens start…stop of [g n d] as chunks [g m CHUNK d], filled up with zeros."""
    x = x[:, start:stop]
    missing = (start - stop) % CHUNK
    return (functional.pad(x, (0, 0, 0, missing)) if missing else x).unflatten(1, (-1, CHUNK))


def states_before(state: Tensor, products: Tensor) -> Tensor:
    """Return the state each chunk begins with, [g m d e], and leave the last one in `state`."""
    running = products.cumsum(1).add_(state[:, None])
    before = torch.cat([state[:, None], running[:, :-1]], 1)
    state.copy_(running[:, -1])
    return before


def states_after(state: Tensor, products: Tensor) -> Tensor:
    """The same from the last chunk backwards."""
    return states_before(state, products.flip(1)).flip(1)


@torch.library.custom_op("attnlab::chunked", mutates_args=())
def chunked(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> Tensor:
    """Sum (q_i·k_j) v_j over j ≤ i, plus q_i·state; [g n d], [g n e], [g d e]."""
    out = v.new_empty(*q.shape[:2], v.shape[2])
    running = state.clone()
    for start, stop in spans(q.shape[1]):
        qc, kc, vc = (cut(x, start, stop) for x in (q, k, v))
        past = states_before(running, kc.mT @ vc)
        part = (qc @ kc.mT).tril_() @ vc
        out[:, start:stop] = part.add_(qc @ past).flatten(1, 2)[:, : stop - start]
    return out


@torch.library.custom_op("attnlab::chunked_backward", mutates_args=())
def chunked_backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v and the state."""
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    running = state.clone()
    for start, stop in spans(q.shape[1]):
        kc, vc, gc = (cut(x, start, stop) for x in (k, v, grad))
        past = states_before(running, kc.mT @ vc)
        part = (gc @ vc.mT).tril_() @ kc
        dq[:, start:stop] = part.add_(gc @ past.mT).flatten(1, 2)[:, : stop - start]
    later = torch.zeros_like(state)
    for start, stop in reversed(list(spans(q.shape[1]))):
        qc, kc, vc, gc = (cut(x, start, stop) for x in (q, k, v, grad))
        ahead = states_after(later, qc.mT @ gc)
        part = (gc @ vc.mT).tril_().mT @ qc
        dk[:, start:stop] = part.add_(vc @ ahead.mT).flatten(1, 2)[:, : stop - start]
        part = (qc @ kc.mT).tril_().mT @ gc
        dv[:, start:stop] = part.add_(kc @ ahead).flatten(1, 2)[:, : stop - start]
    return dq, dk, dv, later


@chunked.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> Tensor:
    return v.new_empty(*q.shape[:2], v.shape[2])


@chunked_backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), torch.empty_like(state)


def remember(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """Keep the inputs alone; the states are computed again."""
    ctx.save_for_backward(*inputs)


def differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
    """Hand the gradient to the backward operator."""
    return tuple(torch.ops.attnlab.chunked_backward(grad.contiguous(), *ctx.saved_tensors))


chunked.register_autograd(differentiate, setup_context=remember)


def causal(q: Tensor, k: Tensor, v: Tensor, offset: int) -> Tensor:
    """Sum over the keys up to each query's position; the first `offset` keys stand before all queries."""
    if offset < 0:
        unseeing = v.new_zeros(*q.shape[:2], -offset, v.shape[3])
        return torch.cat([unseeing, causal(q[:, :, -offset:], k, v, 0)], 2)
    # States add up over the whole length, so they are held in fp32 at least.
    wide = at_least_float(q.dtype)
    q, k, v = (x.to(wide) for x in (q, k, v))
    state = k[:, :, :offset].mT @ v[:, :, :offset]
    parts = (q, k[:, :, offset:], v[:, :, offset:], state)
    return chunked(*(x.flatten(0, 1).contiguous() for x in parts)).unflatten(0, q.shape[:2])
