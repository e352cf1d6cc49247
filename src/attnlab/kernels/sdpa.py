"""Softmax over dot-like scores through torch's scaled_dot_product_attention.

Cosine and learned scales are multiplied into the query, fixed ones are passed on. The squared distance takes one more
coordinate, [2q, 1]·[k, −‖k‖²]: softmax ignores −‖q‖². On a CPU, the causal rule, padding and −‖k‖² share one pass.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .blockwise import choose_origin, is_dot_like, make_factors, multiply_rows
from .call import Call, Request
from .compat import flash_attention, flash_attention_backward
from .division import divide, divide_values, refuse_key_division
from .logsumexp import logsumexp_backward
from .masks import refuse_row_masks
from .normalise import refuse_second_derivatives
from .sinks import attend_with_sink, find_sink, pad_width
from .visibility import Visibility

NAME = "sdpa"
FORM = "torch's fused scaled_dot_product_attention"

SMALLEST = 1e-30
"""The smallest scale that is passed to torch: a smaller one could round to 0 in its precision."""


def refusal(request: Request) -> str | None:
    """Refuse what is not softmax over a dot product, and dropout, which leaves the fused pass on a CPU."""
    mechanism = request.mechanism
    if not mechanism.weights.is_softmax:
        return f"normalises only by softmax, not '{mechanism.weights.name}'"
    if not is_dot_like(mechanism.score) or mechanism.score.form == "angle":
        return f"needs scores that are a dot product, not '{mechanism.score}'"
    if mechanism.cap is not None:
        return f"computes no function of a score, as '{mechanism.cap}' is"
    if mechanism.bias_stages:
        return f"adds no bias of positions, which '{mechanism.bias_stages[0]}' declares"
    if mechanism.score.form == "squared_euclidean" and (mechanism.weights.has_sink or mechanism.weights.has_row_factor):
        return f"omits −‖q‖² from distances, which '{mechanism.weights}' depends on"
    if request.causal and mechanism.causal.where != "before":
        return f"excludes masked pairs before softmax, not '{mechanism.causal}'"
    if request.dropout:
        return "draws its own dropout, outside torch's fused pass and unlike the other kernels"
    return refuse_row_masks(request) or refuse_key_division(request)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    v, divisor = divide_values(call)
    visibility = call.visibility
    is_euclidean = call.mechanism.score.form == "squared_euclidean"
    q, k, scale = choose_scale(call)
    q = multiply_rows(call, q)
    if (sink := find_sink(call)) is not None:
        return divide(attend_with_sink(q, k, v, sink, visibility, scale), divisor)
    is_flat = visibility.is_by_key and (not visibility.causal or visibility.offset == 0)
    if q.device.type == "cpu" and is_flat and (is_euclidean or visibility.mask is not None):
        mask = visibility.mask
        if mask is not None:  # as a term of the scores
            mask = torch.zeros(mask.shape, dtype=q.dtype).masked_fill_(~mask, -torch.inf)
        out = Flash.apply(q, k, v, mask, visibility.empty_rows, visibility.causal, scale, is_euclidean)  # type: ignore[no-untyped-call]
        return divide(out, divisor)
    if is_euclidean:
        q, k = _add_coordinate(q, k)
    width = max(q.shape[-1], v.shape[-1])
    q, k, padded = (functional.pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x for x in (q, k, v))
    out = _attend_fused(q, k, padded, visibility, scale)[..., : v.shape[-1]]
    return divide(out, divisor)


def choose_scale(call: Call) -> tuple[Tensor, Tensor, float]:
    """Return queries, keys and a scale whose scaled products are the scores, up to the norms of distances."""
    score = call.mechanism.score
    # torch scales after it masks: −∞ times a scale of 0 or below is NaN or +∞, so those scales go into the query too.
    factor = score.scale_factor(call.q.shape[-1], call.params_of(score)) if score.form == "dot" else 0.0
    if not isinstance(factor, Tensor) and factor > SMALLEST:
        return call.q, call.k, factor
    if score.form == "squared_euclidean":
        return call.q, call.k, 1.0
    return (*make_factors(score, call.q, call.k, call.params_of(score)), 1.0)


def _add_coordinate(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors whose dot product is −‖q−k‖²/√d up to a constant per query."""
    scale = 2 / math.sqrt(q.shape[-1])
    start = choose_origin(q, k)
    q, k = q - start, k - start
    halves = k.square().sum(-1, keepdim=True) * -0.5
    return torch.cat([q, torch.ones_like(q[..., :1])], -1) * scale, torch.cat([k, halves], -1)


def _center(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and k relative to the origin of distances; not copies if it is 0."""
    start = choose_origin(q, k)
    return (q - start, k - start) if torch.compiler.is_compiling() or bool(start.any()) else (q, k)


def _attend_fused(q: Tensor, k: Tensor, v: Tensor, visibility: Visibility, scale: float) -> Tensor:
    """Attend through torch's function, on any device, with any mask."""
    if visibility.mask is None and (visibility.offset == 0 or not visibility.causal):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=visibility.causal, scale=scale)
    pairs = visibility.pairs
    if pairs is None or (visibility.mask is None and visibility.offset >= 0):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=pairs, scale=scale)
    # A row that sees nothing would be 0/0: let it see everything, and discard the result.
    empty = visibility.empty_rows
    if empty is None:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=pairs, scale=scale)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=pairs | empty, scale=scale)
    return out.masked_fill(empty, 0)


class Flash(torch.autograd.Function):
    """The CPU's fused pass, which takes the causal rule and a padding mask at once.

    With `euclidean`, (q·k − ‖k‖²/2) · 2/√d is −‖q−k‖²/√d up to a constant per query.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, empty: Tensor | None,
        causal: bool, scale: float, euclidean: bool,
    ) -> Tensor:  # fmt: skip
        if euclidean:
            (q, k), scale = _center(q, k), 2 / math.sqrt(q.shape[-1])
            term = torch.linalg.vector_norm(k, dim=-1).square_().mul_(-0.5 * scale)[:, :, None]
            mask = term if mask is None else mask + term
        width = max(q.shape[-1], v.shape[-1])
        left, right, values = (pad_width(x, width) for x in (q, k, v))
        out, logsumexp = flash_attention(left, right, values, causal, mask, scale)
        if empty is not None:
            # Rows that see nothing: an output of 0, and a normaliser that makes every recomputed weight 0.
            out, logsumexp = out.masked_fill(empty, 0), logsumexp.masked_fill(empty[..., 0], torch.inf)
        ctx.save_for_backward(left, right, values, out, logsumexp, mask, empty)
        ctx.causal, ctx.euclidean, ctx.scale, ctx.widths = causal, euclidean, scale, (q.shape[-1], v.shape[-1])
        return out[..., : v.shape[-1]]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        *saved, mask, empty = ctx.saved_tensors
        grad = grad if empty is None else grad.masked_fill(empty, 0)
        if not ctx.euclidean:
            grad = pad_width(grad, saved[0].shape[-1])
            dq, dk, dv = flash_attention_backward(grad, tuple(saved), ctx.causal, mask, ctx.scale)
        else:
            # torch's pass needs eight more coordinates of every vector. bf16 (with its logsumexp in fp32) would be
            # multiplied in fp32 by ours.
            is_in_tiles = saved[0].dtype == saved[-1].dtype
            differentiate = _differentiate_in_tiles if is_in_tiles else _differentiate_with_coordinate
            dq, dk, dv = differentiate(ctx, grad, saved, mask)
        d, value_dim = ctx.widths
        return dq[..., :d], dk[..., :d], dv[..., :value_dim], None, None, None, None, None


Gradients = tuple[Tensor, Tensor, Tensor]


def _differentiate_in_tiles(ctx: Any, grad: Tensor, saved: list[Tensor], bias: Tensor) -> Gradients:
    """Differentiate squared distances, a product plus the bias −‖k‖²/√d."""
    d, value_dim = ctx.widths
    narrow = [x[..., :width] for x, width in zip(saved, (d, d, value_dim, value_dim), strict=False)]
    bias = bias.expand(*narrow[1].shape[:2], 1, -1)[:, :, 0]
    grad, q, k, v, out, logsumexp, bias = (x.flatten(0, 1) for x in (grad, *narrow, saved[-1], bias))
    dq, dk, dv, dbias = logsumexp_backward(grad, q, k, v, out, logsumexp, bias, ctx.scale, ctx.causal)
    dk.addcmul_(k, dbias[..., None], value=-ctx.scale)
    dq, dk, dv = (x.unflatten(0, saved[0].shape[:2]) for x in (dq, dk, dv))
    return dq, dk, dv


def _differentiate_with_coordinate(ctx: Any, grad: Tensor, saved: list[Tensor], bias: Tensor) -> Gradients:
    """Differentiate squared distances by torch's pass: a coordinate of q that is 1 gives the gradient of −‖k‖²."""
    *vectors, logsumexp = saved
    d = ctx.widths[0]
    width = max(vectors[0].shape[-1], (d + 8) // 8 * 8)  # a multiple of 8: whole registers
    left, right, values, out, grad = (pad_width(x, width) for x in (*vectors, grad))
    left = left if left is not vectors[0] else left.clone()
    left[..., d] = 1
    dq, dk, dv = flash_attention_backward(grad, (left, right, values, out, logsumexp), ctx.causal, bias, ctx.scale)
    dk[..., :d].addcmul_(right[..., :d], dk[..., d : d + 1], value=-1)
    return dq, dk, dv
