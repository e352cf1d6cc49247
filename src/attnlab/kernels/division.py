"""Where a kernel divides by the length: all weights of a query share its n, so the output is divided; with
divide_at=key all weights of a key share one n, so its value is divided before it is mixed."""

import torch
from torch import Tensor

from .call import Call, Request, at_least_float


def as_divisor(count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return counts as numbers to divide by: at least 1, at least fp32."""
    return count.clamp(min=1).to(at_least_float(dtype))


def divide_values(call: Call) -> tuple[Tensor, Tensor | None]:
    """Return the values, divided if divide_at=key, and the divisor of the output, or None."""
    stage, visibility = call.mechanism.weights, call.visibility
    if stage.divide == 1:
        return call.v, None
    p = call.params_of(stage)
    if stage.divide_at == "query" or not visibility.causal:
        return call.v, stage.divisor(as_divisor(visibility.count, call.v.dtype), p)
    divisor = stage.divisor(as_divisor(visibility.key_count, call.v.dtype), p)
    return divide(call.v, None if divisor is None else divisor.mT), None


def divide(x: Tensor, divisor: Tensor | None) -> Tensor:
    """Divide by [b|1 h|1 n 1]; None divides by nothing."""
    return x if divisor is None else (x / divisor).to(x.dtype)


def refuse_key_division(request: Request) -> str | None:
    """Return why values cannot be divided before they are mixed, or None."""
    stage = request.mechanism.weights
    if stage.divide != 1 and stage.divide_at == "key" and request.causal and request.mask == "pairs":
        return "divides a key by one count for all queries; this mask differs between queries"
    return None
