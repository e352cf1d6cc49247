"""Unit vectors times a factor per row: the reference's function in fewer passes over memory."""

from typing import Any

import torch
from torch import Tensor

from attnlab.errors import KernelError


class Unit(torch.autograd.Function):
    """y = x/‖x‖ · factor; a zero vector stays zero. The factor [.. n 1] is a constant.

    dx = (g·factor − x̂ (x̂·g·factor)) / ‖x‖
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = torch.where(norm == 0, 1, norm.reciprocal())
        ctx.save_for_backward(x, inverse, factor)
        return (x * inverse * factor).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        refuse_second_derivatives()
        x, inverse, factor = ctx.saved_tensors
        # Not x·(inverse²): that overflows for short vectors.
        direction = x * inverse
        along = (direction * grad).sum(-1, keepdim=True)
        return torch.addcmul(grad, direction, along, value=-1).mul_(inverse).mul_(factor), None


def refuse_second_derivatives() -> None:
    """Raise if a backward pass is itself differentiated: its result would silently count as a constant."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise KernelError("second derivatives need kernel='reference'; the other kernels compute only first ones")


def unit(x: Tensor, factor: Tensor | float = 1.0) -> Tensor:
    """Return x/‖x‖ · factor along the last axis."""
    return Unit.apply(x, torch.as_tensor(factor, dtype=x.dtype, device=x.device))  # type: ignore[no-any-return, no-untyped-call]
