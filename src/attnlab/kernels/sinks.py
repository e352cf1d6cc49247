"""Softmax with a sink, a key of score b and value 0: out = σ(l − b)·o, o and l the output and logsumexp without it.

The backward pass is torch's for o: with g = σ(l − b), ds = w (g·dout·v − g·dout·out), so it gets g·dout and out for
dout and o.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .call import Call, at_least_float
from .compat import flash_attention, flash_attention_backward
from .normalise import refuse_second_derivatives
from .visibility import Visibility


def find_sink(call: Call) -> Tensor | None:
    """Return the score of the sink of each head [h], or None without a sink."""
    stage = call.mechanism.weights
    if not stage.has_sink:
        return None
    score = stage.sink_score(call.params_of(stage))
    return torch.as_tensor(score, dtype=at_least_float(call.q.dtype), device=call.q.device).expand(call.q.shape[1])


def pad_width(x: Tensor, width: int) -> Tensor:
    """Return x padded with zeros to a width, with contiguous rows; not differentiable."""
    d = x.shape[-1]
    if d == width:
        return x if x.stride(-1) == 1 else x.contiguous()
    wide = x.new_empty(*x.shape[:-1], width)
    wide[..., :d] = x
    wide[..., d:] = 0
    return wide


def attend_with_sink(q: Tensor, k: Tensor, v: Tensor, sink: Tensor, visibility: Visibility, scale: float) -> Tensor:
    """Return the output [b h q e] of softmax over the scaled products of q and k, and the sinks [h]."""
    if q.device.type != "cpu":
        return _attend_with_key(q, k, v, sink, visibility, scale)
    is_flat = visibility.is_by_key and (not visibility.causal or visibility.offset == 0)
    visible = visibility.mask if is_flat else visibility.pairs
    if visible is not None:  # as a term of the scores
        term = torch.zeros(visible.shape, dtype=q.dtype).masked_fill_(~visible, -torch.inf)
        visible = term.reshape((1,) * (4 - term.dim()) + tuple(term.shape))
    causal = visibility.causal and is_flat
    return _FlashWithSink.apply(q, k, v, sink, visible, visibility.empty_rows, causal, scale)  # type: ignore[no-any-return, no-untyped-call]


def _attend_with_key(q: Tensor, k: Tensor, v: Tensor, sink: Tensor, visibility: Visibility, scale: float) -> Tensor:
    """Attend with one more key, on any device: one more coordinate, 1 for queries, gives it the sink's score."""
    pairs = visibility.pairs
    if pairs is None:
        pairs = torch.ones(1, 1, 1, k.shape[2], dtype=torch.bool, device=q.device)
    seen = functional.pad(pairs.reshape((1,) * (4 - pairs.dim()) + tuple(pairs.shape)), (0, 1), value=True)
    score = (sink / scale).to(q.dtype)[None, :, None, None].expand(k.shape[0], -1, 1, 1)
    key = functional.pad(score, (k.shape[3], 0))
    q, k = functional.pad(q, (0, 1), value=1.0), torch.cat([functional.pad(k, (0, 1)), key], 2)
    width = max(q.shape[3], v.shape[3])
    values = functional.pad(v, (0, width - v.shape[3], 0, 1))
    q, k = (functional.pad(x, (0, width - x.shape[3])) for x in (q, k))
    return functional.scaled_dot_product_attention(q, k, values, attn_mask=seen, scale=scale)[..., : v.shape[3]]


class _FlashWithSink(torch.autograd.Function):
    """The CPU's fused pass, whose logsumexp tells how much the sink takes."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, sink: Tensor, mask: Tensor | None, empty: Tensor | None,
        causal: bool, scale: float,
    ) -> Tensor:  # fmt: skip
        ctx.causal, ctx.scale, ctx.widths = causal, scale, (q.shape[-1], v.shape[-1])
        width = max(ctx.widths)
        q, k, v = (pad_width(x, width) for x in (q, k, v))
        out, logsumexp = flash_attention(q, k, v, causal, mask, scale)
        excess = (logsumexp - sink[:, None])[..., None]
        # The sink's share is not 1 − gate, which would cancel where it is small.
        gate, share = torch.sigmoid(excess), torch.sigmoid(-excess)
        out = (out * gate).to(q.dtype)
        if empty is not None:
            # Rows that see nothing: an output of 0, and a normaliser that makes every recomputed weight 0.
            out, logsumexp = out.masked_fill(empty, 0), logsumexp.masked_fill(empty[..., 0], torch.inf)
            gate, share = gate.masked_fill(empty, 0), share.masked_fill(empty, 0)
        ctx.save_for_backward(q, k, v, out, logsumexp, gate, share, mask)
        return out[..., : ctx.widths[1]]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        q, k, v, out, logsumexp, gate, share, mask = ctx.saved_tensors
        grad = pad_width(grad, q.shape[-1])
        # dout/db = −(1 − g)·out
        dsink = -(share * (grad * out).sum(-1, keepdim=True, dtype=share.dtype)).sum((0, 2, 3))
        saved = (q, k, v, out, logsumexp)
        dq, dk, dv = flash_attention_backward((grad * gate).to(q.dtype), saved, ctx.causal, mask, ctx.scale)
        d, value_dim = ctx.widths
        return dq[..., :d], dk[..., :d], dv[..., :value_dim], dsink, None, None, None, None
