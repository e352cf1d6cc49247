"""Numbers below the smallest normal one, rounded to 0 on this thread while a kernel runs.

Weights of keys that have almost faded are such numbers: a processor multiplies them many times more slowly than others,
and they are too small to change a sum that also has a weight near 1.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.denormals import is_flushing

from .call import Call


def _end() -> None:
    torch.set_flush_denormal(False)


class _Enter(torch.autograd.Function):
    """q, k and v unchanged: begins to round in the forward pass, and ends it in the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        torch.set_flush_denormal(True)
        return q.view_as(q), k.view_as(k), v.view_as(v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        torch.set_flush_denormal(False)
        return gradients


class _Leave(torch.autograd.Function):
    """The output unchanged: ends in the forward pass what `_Enter` began, and begins it in the backward pass."""

    @staticmethod
    def forward(ctx: Any, out: Tensor) -> Tensor:
        torch.set_flush_denormal(False)
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        torch.set_flush_denormal(True)
        # `_Enter` is not reached if gradients of q, k and v are not requested; then the end of the pass ends it.
        torch.autograd.Variable._execution_engine.queue_callback(_end)
        return grad


def compute_without_denormals(compute: Callable[[Call], Tensor], call: Call) -> Tensor:
    """Compute a call, and later its gradients, with such numbers rounded to 0; on a CPU, unless a compiler traces."""
    if call.q.device.type != "cpu" or torch.compiler.is_compiling() or is_flushing():
        return compute(call)
    try:
        q, k, v = _Enter.apply(call.q, call.k, call.v)  # type: ignore[no-untyped-call]
        out: Tensor = _Leave.apply(compute(dataclasses.replace(call, q=q, k=k, v=v)))  # type: ignore[no-untyped-call]
    finally:
        torch.set_flush_denormal(False)
    return out
