"""Additive scores with one multiply, one add and one division a pair and channel:
tanh(a+b) = 1 − 2/(e^{2a}·e^{2b} + 1), so the exponentials are taken once a token. bf16 is raised to fp32 inside."""

from __future__ import annotations

from torch import Tensor

from . import tiled
from .call import Call, Request
from .cpu import native

NAME = "additive"
FORM = "compiled loops over pairs with exponentials taken once a token, tile by tile"


def refusal(request: Request) -> str | None:
    """Refuse other scores, other devices than the CPU, and a machine without a compiler."""
    if request.mechanism.score.form != "additive":
        return f"computes additive scores alone, not '{request.mechanism.score}'"
    return tiled.refusal(request) or native_refusal(request)


def native_refusal(request: Request) -> str | None:
    """Say why the compiled loops cannot serve a request."""
    if request.device != "cpu":
        return f"its loops are compiled for the CPU, not for {request.device}"
    return native.missing()


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    return tiled.attend(call, *score.features(call.q, call.k, call.params_of(score)), "additive")
