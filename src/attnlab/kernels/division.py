"""Where a kernel divides by the length: the weights of a query share its n, so the output is divided; with
divide_at=key the weights of a key share one, so its value is divided before it is mixed."""

from __future__ import annotations

import torch
from torch import Tensor

from .call import Call, Request, at_least_float


def as_divisor(count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return counts as numbers to divide by: at least 1, at least fp32."""
    return count.clamp(min=1).to(at_least_float(dtype))


def divide_values(call: Call) -> tuple[Tensor, Tensor | None]:
    """Return the values, divided already where keys divide, and what the output is still to be divided by."""
    stage, visibility = call.mechanism.weights, call.visibility
    if stage.divide == 1:
        return call.v, None
    p = call.params_of(stage)
    if stage.divide_at == "query" or not visibility.causal:
        return call.v, stage.divisor(as_divisor(visibility.count, call.v.dtype), p)
    return divide(call.v, stage.divisor(as_divisor(visibility.key_count, call.v.dtype), p), by_key=True), None


def divide(x: Tensor, divisor: Tensor | None, by_key: bool = False) -> Tensor:
    """Divide by [b|1 h|1 n 1], or by [b|1 h|1 1 n] along the keys."""
    if divisor is None:
        return x
    return (x / (divisor.mT if by_key else divisor)).to(x.dtype)


def refuse_key_division(request: Request) -> str | None:
    """Say why values cannot be divided up front."""
    stage = request.mechanism.weights
    if stage.divide != 1 and stage.divide_at == "key" and request.causal and request.mask == "pairs":
        return "divides a key by one count for all queries; this mask gives each query its own"
    return None
