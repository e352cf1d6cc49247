"""Manhattan, Minkowski, Chebyshev and unsquared Euclidean distances pair by pair in registers, tile by tile: no
tensor of size n²·d. bf16 is computed in fp32."""

from torch import Tensor

from . import stage_tiles, tiled
from .call import Call, Request
from .cpu import native

NAME = "distance"
FORM = "compiled loops over pairs, tile by tile"

FORMS = ("manhattan", "minkowski", "chebyshev", "euclidean")
"""The distances that are not a matrix product."""

NEED_SCORES = ("minkowski", "euclidean")
"""The distances whose gradient is computed from the distance itself."""


def refusal(request: Request) -> str | None:
    """Refuse other scores, devices other than the CPU, and a machine without a compiler."""
    if request.mechanism.score.form not in FORMS:
        return f"computes only distances that are not a matrix product, not '{request.mechanism.score}'"
    if request.mechanism.bias_stages:
        return f"adds no bias of positions, which '{request.mechanism.bias_stages[0]}' declares"
    if request.mechanism.cap is not None and request.mechanism.score.form in NEED_SCORES:
        return f"differentiates '{request.mechanism.score}' by its own scores, which '{request.mechanism.cap}' replaces"
    if request.mechanism.weights.has_row_factor:
        return f"multiplies no rows of scores, as '{request.mechanism.weights}' does"
    return tiled.refusal(request) or native.refusal(request.device)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    assert score.form is not None
    return stage_tiles.attend(call, *score.features(call.q, call.k, call.params_of(score)), score.form)
