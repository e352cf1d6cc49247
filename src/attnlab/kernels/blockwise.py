"""Dot-like scores by matrix products, any weights, tile by tile: O(n) memory; masked blocks are skipped.

dot, cosine and angle are products of the (unit) vectors. The squared distance is a product of vectors with two more
coordinates: −‖q−k‖² = [2q, 1, −‖q‖²]·[k, −‖k‖², 1].
"""

import math

import torch
from torch import Tensor

from attnlab.mechanisms import Params, Score

from . import stage_tiles, tiled
from .call import Call, Request
from .division import as_divisor
from .normalise import unit

NAME = "blockwise"
FORM = "matrix products, tile by tile, recomputed in the backward pass"


def make_factors(score: Score, q: Tensor, k: Tensor, p: Params) -> tuple[Tensor, Tensor]:
    """Return vectors whose dot product is the score (or, for the angle, its cosine)."""
    if score.form == "features":
        return score.query_features(q, p), score.key_features(k, p)
    if score.form == "dot":
        return (q * score.scale_factor(q.shape[-1], p)).to(q.dtype), k
    if score.form == "cosine":
        factor = score.scale_factor(q.shape[-1], p)
        return (unit(q) * factor if isinstance(factor, Tensor) else unit(q, factor)), unit(k)
    if score.form == "angle":
        return unit(q), unit(k)
    scale = 1 / math.sqrt(q.shape[-1])
    start = choose_origin(q, k)
    q, k = q - start, k - start
    one = q.new_ones(())
    q_norm, k_norm = (-scale * x.square().sum(-1, keepdim=True) for x in (q, k))
    left = torch.cat([q * (2 * scale), one.expand_as(q_norm), q_norm], -1)
    return left, torch.cat([k, k_norm, one.expand_as(k_norm)], -1)


def multiply_rows(call: Call, q: Tensor) -> Tensor:
    """Return the factors of the queries, times what the weights stage multiplies each row of scores by."""
    stage = call.mechanism.weights
    if not stage.has_row_factor:
        return q
    n = as_divisor(call.visibility.count, q.dtype)
    return (q * stage.row_factor(n, call.params_of(stage))).to(q.dtype)


def choose_origin(q: Tensor, k: Tensor) -> Tensor:
    """Return the origin for distances, [b h 1 d]: the first key if all vectors seem to share a large offset, else 0.

    Distances do not change, but a common offset no longer cancels in rounding. The first key, not the mean: a result
    must not depend on keys that its query does not see, not even in rounding.
    """
    first = k[:, :, :1].detach()
    apart = (q[:, :, :1].detach() - first).square().sum(-1, keepdim=True)
    return torch.where(4 * apart < first.square().sum(-1, keepdim=True), first, 0)


def is_dot_like(score: Score) -> bool:
    """Tell whether a score is a function of one dot product."""
    return score.form in ("dot", "cosine", "angle", "squared_euclidean", "features")


def refusal(request: Request) -> str | None:
    """Refuse scores that are not a product, and weights without a tile-wise gradient."""
    stage = request.mechanism.weights
    has_row_factor = stage.has_row_factor
    has_bias = bool(request.mechanism.bias_stages)
    if not is_dot_like(request.mechanism.score):
        return f"needs scores that are a matrix product, not '{request.mechanism.score}'"
    if request.mechanism.score.form == "angle" and has_bias:
        return f"adds a bias of positions only to dot products, not to the angle of '{request.mechanism.score}'"
    if len(request.mechanism.bias_stages) > 1:
        return f"adds one bias of positions, and '{request.mechanism.score}' has one already"
    if has_row_factor and (request.mechanism.score.form == "angle" or has_bias):
        return f"multiplies rows of scores, as '{stage}' does, only if they are dot products"
    if request.mechanism.cap is not None and (request.mechanism.score.form == "angle" or has_row_factor):
        return f"caps only dot products, before any factor, not '{request.mechanism.score}' with '{stage}'"
    return tiled.refusal(request)


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score = call.mechanism.score
    q, k = make_factors(score, call.q, call.k, call.params_of(score))
    q = multiply_rows(call, q)
    return stage_tiles.attend(call, q, k, None, "angle" if score.form == "angle" else "dot")
