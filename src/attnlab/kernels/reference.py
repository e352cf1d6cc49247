"""The definition: every mechanism, one equation after another, in any floating-point dtype on any device. All other
kernels are checked against it.

    s = cap(score(q, k) + bias)      w = weights(s) / divide(n), 0 for masked pairs      out = w·v

`forget` adds its decay to s, or multiplies pointwise weights by its exponential; `heads` mixes s and w across heads;
`delta` replaces v.

`attend` has put masks of positions (window, chunk) into the visibility; masks that depend on the scores or the visible
pairs of a row (top_k) are applied here.

Masked pairs are handled in one of three ways: the weights stage excludes them from its normalisation, and their weight
is 0 (mask(before), and padding always); they are weighted like any other and set to 0 afterwards (mask(after)); or
they are weighted with a score of 0 (mask(zero)).
"""

import torch
from torch import Tensor

from attnlab.mechanisms.stage import check_result

from .call import Call, Request, at_least_float
from .decay import solve_delta
from .dropout import keep, scale
from .failures import call_stage
from .masks import keep_by_rows
from .positions import compute_bias
from .standins import fill_standins, needs_renormalising, renormalise

NAME = "reference"
FORM = "all pairs at once, as the equations are written"


def refusal(request: Request) -> str | None:
    """Accept every request."""
    return None


def attend(call: Call) -> Tensor:
    """Return weights·values, [b h q d]."""
    return mix(call, weights(call))


def mix(call: Call, w: Tensor) -> Tensor:
    """Drop weights [b h q k], and return weights·values."""
    if call.dropout:
        w = w * keep(call, w.shape) * scale(call.dropout)
    if call.mechanism.delta is None:
        return w @ call.v
    assert call.beta is not None
    return w @ solve_delta(call.k, call.v, call.beta, call.decay).to(w.dtype)


def weights(call: Call) -> Tensor:
    """Return the weights [b h q k], before dropout."""
    mechanism, visibility = call.mechanism, call.visibility
    visible, allowed = visibility.pairs, None
    if mechanism.causal.where != "before" and visibility.causal:
        visible, allowed = visibility.mask, visibility.causal_pairs
    empty = visibility.empty_rows
    # A row that sees nothing is computed as if it saw everything, so that no stage has to normalise an empty row.
    shown = visible | empty if visible is not None and empty is not None else visible
    scores = _score(call, shown)
    if mechanism.positions.bias_of is not None:
        assert call.positions is not None
        bias = compute_bias(mechanism.positions, call.positions, call.params_of(mechanism.positions))
        scores = scores + bias.to(scores.dtype)
    if mechanism.cap is not None:
        scores = mechanism.cap(scores)
    heads, adds_decay = mechanism.heads, mechanism.forget is not None and not mechanism.weights.pointwise
    if heads is not None:
        mixed = call_stage(heads, heads.mix_scores, scores, call.params_of(heads))
        check_result(heads, mixed, scores.shape)
        scores = mixed
    if adds_decay and call.decay is not None:
        scores = (scores + call.decay.logarithms).to(scores.dtype)
    if mechanism.causal.where == "zero" and allowed is not None:
        scores, allowed = scores.masked_fill(~allowed, 0), None
    shown = keep_by_rows(call, scores, shown)
    visible = shown if shown is None or empty is None else shown & ~empty
    if visible is not None:
        scores = fill_standins(scores, visible, empty)
    w = weigh(call, scores, shown)
    if allowed is not None:
        w = w.masked_fill(~allowed, 0)
    if empty is not None:
        w = w.masked_fill(empty, 0)
    if call.decay is not None and not adds_decay and call.decay.keys.shape[-1] == 1:
        w = w * call.decay.logarithms.exp()
    if heads is not None:
        mixed = call_stage(heads, heads.mix_weights, w, call.params_of(heads))
        check_result(heads, mixed, w.shape)
        w = mixed
    stage, n = mechanism.weights, _lengths(call, scores)
    if stage.divide == "sum":
        return renormalise(w).to(scores.dtype)
    length = n if stage.divide_at == "query" else visibility.key_count.clamp(min=1).to(n.dtype)
    divisor = stage.divisor(length, call.params_of(stage))
    return (w if divisor is None else w / divisor).to(scores.dtype)


def _score(call: Call, visible: Tensor | None) -> Tensor:
    """Return the scores [b h q k]; a decay per channel acts on the products of the channels that a score sums."""
    score, shape = call.mechanism.score, (*call.q.shape[:3], call.k.shape[2])
    if call.decay is not None and call.decay.keys.shape[-1] > 1:
        q = call.q * score.scale_factor(call.q.shape[-1], call.params_of(score))
        return torch.einsum(
            "bhqd,bhkd,bhqkd->bhqk", q, call.k, call.decay.logarithms.exp().to(q.dtype).expand(*shape, -1)
        )
    given = call.gather_needs(score, visible)
    scores = call_stage(score, score.__call__, call.q, call.k, call.params_of(score), **given)
    check_result(score, scores, shape, call.q.dtype)
    return scores


def weigh(call: Call, scores: Tensor, visible: Tensor | None) -> Tensor:
    """Turn scores into undivided weights, 0 for pairs that are not visible."""
    stage, n = call.mechanism.weights, _lengths(call, scores)
    p, given = call.params_of(stage), call.gather_needs(stage, visible)
    is_renormalised = False
    if visible is not None and "visible" not in stage.needs:
        is_renormalised = needs_renormalising(
            stage, lambda s: call_stage(stage, stage.__call__, s, n, p, **given), scores, visible
        )
    w = call_stage(stage, stage.__call__, scores, n, p, **given)
    check_result(stage, w, scores.shape)
    if visible is not None:
        w = w.masked_fill(~visible, 0)
    return renormalise(w) if is_renormalised else w


def _lengths(call: Call, scores: Tensor) -> Tensor:
    """Return how many keys each query sees, at least 1, [b|1 h|1 q 1]."""
    return call.visibility.count.clamp(min=1).to(at_least_float(scores.dtype))
