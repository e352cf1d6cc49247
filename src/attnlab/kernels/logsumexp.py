"""The backward pass of softmax attention whose logsumexp is known, in tiles: weights are exp(s − logsumexp).

Scores are scale · q·k plus a bias per key, whose gradient torch's fused pass does not compute. More coordinates of q
and k add the bias and subtract the logsumexp within the product, and one of the gradient subtracts Σ_j w_ij dw_ij.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

ROWS, KEYS = 256, 1024
"""Queries and keys of a tile, whose weights take 1 MB in fp32."""


@torch.library.custom_op("attnlab::logsumexp_backward", mutates_args=())
def logsumexp_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, bias: Tensor,
    scale: float, causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k, v [g n d] and the bias [g k], which is −∞ for a masked key."""
    gradients = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), torch.empty_like(bias)
    num_pairs = min(q.shape[1], ROWS) * min(k.shape[1], KEYS)
    num_groups = torch.get_num_threads() * ROWS * KEYS // max(1, num_pairs)  # a tile for every thread
    for groups in _split(len(q), max(1, num_groups)):
        parts = _differentiate(
            grad[groups], q[groups], k[groups], v[groups], out[groups], logsumexp[groups], bias[groups], scale, causal
        )
        for gradient, part in zip(gradients, parts, strict=True):
            gradient[groups] = part
    return gradients


@logsumexp_backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, bias: Tensor, *options: Any) -> Any:
    return tuple(x.new_empty(x.shape) for x in (q, k, v, bias))


def _differentiate(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, bias: Tensor,
    scale: float, causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of some groups."""
    d, (num_queries, num_keys) = q.shape[-1], (q.shape[1], k.shape[1])
    left, right = _append(q * scale, 1, -logsumexp[..., None]), _append(k, bias[..., None], 1)
    slopes, values = _append(grad, -(grad * out).sum(-1, keepdim=True)), _append(v, 1)
    # Those of keys and values are transposed until the end: matrix products with long rows are faster. The coordinate
    # of q that is 1 gives the gradient of the bias.
    dq, dk, dv = torch.zeros_like(q), k.new_zeros(len(k), d + 1, num_keys), v.new_zeros(v.mT.shape)
    buffers = q.new_empty(2, len(q) * min(ROWS, num_queries) * min(KEYS, num_keys))
    for rows in _split(num_queries, ROWS):
        for keys in _split(min(rows.stop, num_keys) if causal else num_keys, KEYS):
            shape = (len(q), rows.stop - rows.start, keys.stop - keys.start)
            w, ds = (buffer[: shape[0] * shape[1] * shape[2]].view(shape) for buffer in buffers)
            torch.bmm(left[:, rows], right[:, keys].mT, out=w).exp_()
            if causal and keys.stop > rows.start + 1:
                w.tril_(rows.start - keys.start)
            torch.bmm(slopes[:, rows], values[:, keys].mT, out=ds).mul_(w)
            dv[:, :, keys].baddbmm_(grad[:, rows].mT, w)
            dk[:, :, keys].baddbmm_(left[:, rows, : d + 1].mT, ds)
            dq[:, rows].baddbmm_(ds, k[:, keys], alpha=scale)
    return dq, dk[:, :d].mT, dv.mT, dk[:, d]


def _split(length: int, size: int) -> Iterator[slice]:
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def _append(x: Tensor, *coordinates: Tensor | int) -> Tensor:
    """Return x with more coordinates, each a number or [g n 1]."""
    d = x.shape[-1]
    wide = x.new_empty(*x.shape[:-1], d + len(coordinates))
    wide[..., :d] = x
    for number, coordinate in enumerate(coordinates, d):
        wide[..., number : number + 1] = coordinate
    return wide
