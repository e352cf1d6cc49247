"""Manhattan, Minkowski, Chebyshev and unsquared Euclidean distances pair by pair in registers, tile by tile: no
tensor of size n²·d. bf16 is raised to fp32 inside."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.mechanisms import Score
from attnlab.mechanisms.scores import Chebyshev, Euclidean, Manhattan, Minkowski

from . import tiled
from .additive import native_refusal
from .call import Call, Request

NAME = "distance"
FORM = "compiled loops over pairs, tile by tile"


def is_distance(score: Score) -> bool:
    """Tell whether a score is a distance that is no matrix product."""
    return type(score) in (Manhattan, Minkowski, Chebyshev) or (type(score) is Euclidean and not score.squared)


def refusal(request: Request) -> str | None:
    """Refuse other scores, other devices than the CPU, and a machine without a compiler."""
    if not is_distance(request.mechanism.score):
        return f"computes distances that are no matrix product, not '{request.mechanism.score}'"
    return tiled.refusal(request) or native_refusal(request)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    extra = None
    if isinstance(score, Minkowski):
        exponent = score.exponent(call.params_of(score))
        extra = torch.as_tensor(exponent, dtype=call.q.dtype, device=call.q.device).expand(call.q.shape[1])[:, None]
    else:
        extra = call.q.new_zeros(call.q.shape[1], 1)
    return tiled.attend(call, call.q, call.k, extra, score.name)
