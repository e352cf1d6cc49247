"""Where a kernel divides by the length: all weights of a query share its n, so the output is divided; with
divide_at=key all weights of a key share one n, so its value is divided before it is mixed. The sum of the weights is
what they mix of a channel of ones."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from .call import Call, Request, at_least_float


def as_divisor(count: Tensor, dtype: torch.dtype) -> Tensor:
    """Return counts as numbers to divide by: at least 1, at least fp32."""
    return count.clamp(min=1).to(at_least_float(dtype))


Divisor = Tensor | Literal["sum"] | None
"""What the output is divided by: [b|1 h|1 n 1], its own last channel, or nothing."""


def divide_values(call: Call) -> tuple[Tensor, Divisor]:
    """Return the values, divided if divide_at=key, and the divisor of the output."""
    stage, visibility = call.mechanism.weights, call.visibility
    if stage.divide == 1:
        return call.v, None
    if stage.divide == "sum":
        return functional.pad(call.v, (0, 1), value=1.0), "sum"
    p = call.params_of(stage)
    if stage.divide_at == "query" or not visibility.causal:
        return call.v, stage.divisor(as_divisor(visibility.count, call.v.dtype), p)
    divisor = stage.divisor(as_divisor(visibility.key_count, call.v.dtype), p)
    return divide(call.v, None if divisor is None else divisor.mT), None


def divide(x: Tensor, divisor: Divisor) -> Tensor:
    """Divide an output. A row whose weights sum to 0 gives zeros."""
    if divisor is None:
        return x
    if isinstance(divisor, str):
        x, total = x[..., :-1], x[..., -1:]
        divisor = torch.where(total == 0, torch.ones_like(total), total)
    return (x / divisor).to(x.dtype)


def refuse_sum_with_dropout(request: Request) -> str | None:
    """Return why the weights cannot be divided by their sum: it is taken before dropout, or None."""
    if request.mechanism.weights.divide == "sum" and request.dropout:
        return "would divide by the sum of the weights that dropout leaves, instead of all"
    return None


def refuse_key_division(request: Request) -> str | None:
    """Return why values cannot be divided before they are mixed, or None."""
    stage = request.mechanism.weights
    if stage.divide != 1 and stage.divide_at == "key" and request.causal and request.hides_pairs:
        return "divides a key by one count for all queries; this mask differs between queries"
    return None
