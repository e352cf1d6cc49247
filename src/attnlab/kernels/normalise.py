"""Unit vectors, with a factor a row folded in: the same function as the reference's, in fewer passes over memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Unit(torch.autograd.Function):
    """y = x/‖x‖ · factor; a zero vector stays zero. The factor [.. n 1] is a constant.

    dx = (g·factor − x̂ (x̂·g·factor)) / ‖x‖
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = torch.where(norm == 0, 1, norm.reciprocal())
        ctx.save_for_backward(x, inverse, factor)
        return (x * (inverse * factor)).to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, inverse, factor = ctx.saved_tensors
        along = (x * grad).sum(-1, keepdim=True).mul_(inverse * inverse)
        return torch.addcmul(grad, x, along, value=-1).mul_(inverse * factor), None


def unit(x: Tensor, factor: Tensor | float = 1.0) -> Tensor:
    """Return x/‖x‖ · factor along the last axis."""
    return Unit.apply(x, torch.as_tensor(factor, dtype=x.dtype, device=x.device))  # type: ignore[no-any-return, no-untyped-call]
