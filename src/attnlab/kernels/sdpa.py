"""Softmax over dot-like scores through torch's scaled_dot_product_attention.

Cosine and learned scales are multiplied into the query. The squared distance takes one more coordinate,
[2q, 1]·[k, −‖k‖²]: softmax does not see −‖q‖². On a CPU, causality and padding go into the same fused pass.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attnlab.mechanisms.scores import Angle, Euclidean
from attnlab.mechanisms.weights import Softmax

from .blockwise import factors, is_dot_like
from .call import Call, Request
from .division import divided, divided_values, key_division_refusal
from .visibility import Visibility

NAME = "sdpa"
FORM = "torch's fused scaled_dot_product_attention"

aten = torch.ops.aten


def refusal(request: Request) -> str | None:
    """Refuse what is not softmax over a dot product, and dropout, which leaves the fused pass on a CPU."""
    mechanism = request.mechanism
    if not isinstance(mechanism.weights, Softmax):
        return f"normalises by softmax alone, not '{mechanism.weights.name}'"
    if not is_dot_like(mechanism.score) or isinstance(mechanism.score, Angle):
        return f"'{mechanism.score}' is not a plain dot product"
    if request.causal and mechanism.mask.where != "before":
        return f"leaves forbidden pairs out before softmax, not '{mechanism.mask}'"
    if request.dropout:
        return "draws its own dropout, outside torch's fused pass and unlike the other kernels"
    return key_division_refusal(request)


def features(call: Call) -> tuple[Tensor, Tensor]:
    """Return vectors whose dot product is the score up to a constant a query."""
    score = call.mechanism.score
    if not isinstance(score, Euclidean):
        return factors(score, call.q, call.k, call.params_of(score))
    scale = 1 / math.sqrt(call.q.shape[-1])
    norms = call.k.square().sum(-1, keepdim=True) * -scale
    ones = call.q.new_ones(()).expand(*call.q.shape[:3], 1)
    return torch.cat([call.q * (2 * scale), ones], -1), torch.cat([call.k, norms], -1)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    q, k = features(call)
    v, divisor = divided_values(call)
    width, value_dim = max(q.shape[-1], v.shape[-1]), v.shape[-1]
    q, k, v = (functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x for x in (q, k, v))
    out = fused(q, k, v, call.visibility)[..., :value_dim]
    return divided(out, divisor)


def fused(q: Tensor, k: Tensor, v: Tensor, visibility: Visibility) -> Tensor:
    """Attend through the fused pass that fits what is visible."""
    is_square = visibility.offset == 0
    if visibility.mask is None and (is_square or not visibility.causal):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=visibility.causal, scale=1.0)
    if visibility.mask is not None and visibility.is_by_key and visibility.causal and is_square and q.device.type == "cpu":
        empty = visibility.empty
        assert empty is not None
        mask = torch.zeros(visibility.mask.shape, dtype=q.dtype).masked_fill_(~visibility.mask, -torch.inf)
        return CausalPadded.apply(q, k, v, mask, empty)  # type: ignore[no-any-return]
    pairs, empty = visibility.pairs, visibility.empty
    if pairs is None:
        return functional.scaled_dot_product_attention(q, k, v, scale=1.0)
    if empty is None:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=pairs, scale=1.0)
    # A row that sees nothing would be 0/0: let it see everything, and throw the result away.
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=pairs | empty, scale=1.0)
    return out.masked_fill(empty, 0)


class CausalPadded(torch.autograd.Function):
    """The CPU's fused pass with the causal rule and a padding mask at once, which the public function refuses."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, empty: Tensor) -> Tensor:
        out, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True, attn_mask=mask, scale=1.0)
        # Rows that see nothing: an output of 0, and a normaliser that makes every recomputed weight 0.
        out = out.masked_fill(empty, 0)
        logsumexp = logsumexp.masked_fill(empty[..., 0], torch.inf)
        ctx.save_for_backward(q, k, v, out, logsumexp, mask, empty)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, logsumexp, mask, empty = ctx.saved_tensors
        grad = grad.masked_fill(empty, 0)
        dq, dk, dv = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, out, logsumexp, 0.0, True, attn_mask=mask, scale=1.0
        )
        return dq, dk, dv, None, None
