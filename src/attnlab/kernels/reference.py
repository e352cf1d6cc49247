"""The definition: every mechanism, one equation after another, in any dtype on any device. All else is checked
against this.

    s = score(q, k)      w = weights(s) / divide(n), 0 where a pair may not meet      out = w·v

Forbidden pairs leave at three places: with a score as good as −∞ before the weights (mask(before), and padding always),
0 after them (mask(after)), or as a score of 0 that is weighed like any other (mask(zero)).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.mechanisms import Mechanism, Stage, Weights

from .call import Call, Request, at_least_float
from .dropout import keep, scale
from .visibility import Visibility

NAME = "reference"
FORM = "all pairs at once, as the equations stand"


def refusal(request: Request) -> str | None:
    """Compute anything."""
    return None


def attend(call: Call) -> Tensor:
    """Return weights·values, [b h q d]."""
    w = weights(call)
    if call.dropout:
        w = w * keep(call, w.shape) * scale(call.dropout)
    return w @ call.v


def weights(call: Call) -> Tensor:
    """Return the weights [b h q k], before dropout."""
    mechanism, visibility = call.mechanism, call.visibility
    scores = mechanism.score(call.q, call.k, call.params_of(mechanism.score))
    check_shape(mechanism.score, scores, (*call.q.shape[:3], call.k.shape[2]))
    visible, zeroed = visibility.pairs, None
    if mechanism.mask.where != "before" and visibility.causal:
        visible, zeroed = visibility.mask, visibility.causal_pairs
    if mechanism.mask.where == "zero" and zeroed is not None:
        scores, zeroed = scores.masked_fill(~zeroed, 0), None
    return weigh(mechanism, scores, visible, zeroed, visibility, call)


def check_shape(stage: Stage, found: Tensor, needed: tuple[int, ...]) -> None:
    """Name the stage whose result does not have a number for every pair."""
    if tuple(found.shape) != needed:
        raise ShapeError(f"'{stage}' must return [batch, heads, queries, keys] = {needed}, not {tuple(found.shape)}")


def forbidden(stage: Weights, dtype: torch.dtype) -> float:
    """Return the score of a forbidden pair: −∞, or for a stage of the user's own a number as low as can be squared.

    What such a stage learns may be multiplied with its scores, and 0·(−∞) would make NaN of its gradient.
    """
    if type(stage).__module__ == Weights.__module__:
        return -math.inf
    largest = torch.finfo(dtype).max
    return -largest if dtype == torch.float16 else -math.sqrt(largest)


def weigh(
    mechanism: Mechanism,
    scores: Tensor,
    visible: Tensor | None,
    zeroed: Tensor | None,
    visibility: Visibility,
    call: Call,
) -> Tensor:
    """Turn scores into weights: pairs not `visible` never enter, pairs not in `zeroed` are wiped out afterwards."""
    stage, p = mechanism.weights, call.params_of(mechanism.weights)
    n = visibility.count.clamp(min=1).to(at_least_float(scores.dtype))
    if visible is not None:
        scores = scores.masked_fill(~visible, forbidden(stage, scores.dtype))
    w = stage(scores, n, p)
    check_shape(stage, w, tuple(scores.shape))
    for wiped in (visible, zeroed):
        if wiped is not None:
            w = w.masked_fill(~wiped, 0)
    empty = visibility.empty
    if empty is not None:
        w = w.masked_fill(empty, 0)
    length = n if stage.divide_at == "query" else visibility.key_count.clamp(min=1).to(n.dtype)
    divisor = stage.divisor(length, p)
    return (w if divisor is None else w / divisor).to(scores.dtype)
