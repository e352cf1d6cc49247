"""Additive scores with one multiplication, one addition and one division per pair and channel:
tanh(a+b) = 1 − 2/(e^{2a}·e^{2b} + 1), so the exponentials are computed once per token. bf16 is computed in fp32."""

from torch import Tensor

from . import stage_tiles, tiled
from .call import Call, Request
from .cpu import native

NAME = "additive"
FORM = "compiled loops over pairs with exponentials computed once per token, tile by tile"


def refusal(request: Request) -> str | None:
    """Refuse other scores, devices other than the CPU, and a machine without a compiler."""
    if request.mechanism.score.form != "additive":
        return f"computes only additive scores, not '{request.mechanism.score}'"
    if request.mechanism.bias_stages:
        return f"adds no bias of positions, which '{request.mechanism.bias_stages[0]}' declares"
    if request.mechanism.weights.has_row_factor:
        return f"multiplies no rows of scores, as '{request.mechanism.weights}' does"
    return tiled.refusal(request) or native.refusal(request.device)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    return stage_tiles.attend(call, *score.features(call.q, call.k, call.params_of(score)), "additive")
