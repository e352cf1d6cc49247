"""Manhattan, Minkowski, Chebyshev and unsquared Euclidean distances pair by pair in registers, tile by tile: no
tensor of size n²·d. bf16 is raised to fp32 inside."""

from __future__ import annotations

from torch import Tensor

from . import tiled
from .additive import native_refusal
from .call import Call, Request

NAME = "distance"
FORM = "compiled loops over pairs, tile by tile"


FORMS = ("manhattan", "minkowski", "chebyshev", "euclidean")
"""The distances that are no matrix product."""


def refusal(request: Request) -> str | None:
    """Refuse other scores, other devices than the CPU, and a machine without a compiler."""
    if request.mechanism.score.form not in FORMS:
        return f"computes distances that are no matrix product, not '{request.mechanism.score}'"
    return tiled.refusal(request) or native_refusal(request)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    assert score.form is not None
    return tiled.attend(call, *score.features(call.q, call.k, call.params_of(score)), score.form)
