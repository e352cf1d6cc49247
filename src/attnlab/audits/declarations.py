"""What stages declare and faster kernels rely on, compared with what they compute."""

from collections.abc import Iterator

import torch
from torch import Tensor

from attnlab.kernels.call import Call
from attnlab.kernels.masks import call_mask, list_position_masks
from attnlab.kernels.prepare import prepare
from attnlab.mechanisms import Positions

from .finding import FindingPart
from .subject import LONG, SHORT, Subject, peak, tolerance

DECLARATION = "what a stage declares"


def check_declarations(subject: Subject) -> Iterator[FindingPart]:
    """Compare what a stage declares, and faster kernels rely on, with its call."""
    inputs, learned = subject.inputs(1, SHORT, torch.float64), subject.cast_parameters(torch.float64)
    call, _ = prepare(
        inputs["q"], inputs["k"], inputs["v"], subject.mechanism, parameters=learned, x=inputs.get("x"),
        first=inputs.get("first"), tokens=subject.read_tokens(inputs),
    )  # fmt: skip
    score, weights = call.mechanism.score, call.mechanism.weights
    p = call.params_of(score)
    scores = score(call.q, call.k, p, **call.gather_needs(score, None)).detach()
    name = type(weights).__name__
    if weights.pointwise:
        n, given = torch.full((1, 1, 1, 1), SHORT, dtype=scores.dtype), call.gather_needs(weights, None)
        changed = torch.cat([scores[..., :1], scores[..., 1:].flip(-1) + 1], -1)
        first, second = (weights(s, n, call.params_of(weights), **given)[..., :1].detach() for s in (scores, changed))
        claim = f"{name} declares pointwise = True: each weight depends only on its own score"
        yield FindingPart(claim, peak(first - second), tolerance(first), DECLARATION)
    if weights.is_softmax:
        yield _check_softmax(call, scores)
    name, what = type(score).__name__, "query_features(q)·key_features(k)"
    if score.form == "features":
        q, k = score.query_features(call.q, p), score.key_features(call.k, p)
        product = (q @ k.mT).detach()
        if score.bias_of is not None and call.positions is not None:
            product, what = product + score.position_bias(call.positions, p).detach(), f"{what} + position_bias"
        claim = f'{name} declares form = "features": its score is {what}'
        yield FindingPart(claim, peak(product - scores), tolerance(scores), DECLARATION)
    for stage in call.mechanism.bias_stages:
        if stage.bias_of == "distances" and call.positions is not None:
            moved, own = Positions(call.positions.queries + 3, call.positions.keys + 3), call.params_of(stage)
            first, second = (stage.position_bias(where, own).detach() for where in (call.positions, moved))
            claim = (
                f'{type(stage).__name__} declares bias_of = "distances": its bias depends only on the position of the '
                "query minus that of the key"
            )
            yield FindingPart(claim, peak(first - second), tolerance(first), DECLARATION)
    yield from _check_masks(call)


def find_false_declaration(subject: Subject) -> str:
    """Return the first declaration of a stage that its call contradicts, or an empty string."""
    return next((part.name for part in check_declarations(subject) if not part.passed), "")


def _check_softmax(call: Call, scores: Tensor) -> FindingPart:
    """Compare weights that declare themselves a softmax with one of scores times row_factor, with a sink."""
    stage, p = call.mechanism.weights, call.params_of(call.mechanism.weights)
    n = torch.full((1, 1, 1, 1), SHORT, dtype=scores.dtype)
    found = stage(scores, n, p, **call.gather_needs(stage, None)).detach()
    what, row = "a softmax", scores
    if stage.has_row_factor:
        what, row = f"{what} of scores times row_factor", scores * stage.row_factor(n, p)
    if stage.has_sink:
        what, sink = f"{what}, with sink_score", torch.as_tensor(stage.sink_score(p), dtype=row.dtype)
        row = torch.cat([row, sink.reshape(1, -1, 1, 1).expand(*row.shape[:3], 1)], -1)
    expected = torch.softmax(row, -1)[..., : scores.shape[-1]].detach()
    claim = f"{type(stage).__name__} declares is_softmax = True: its weights are {what}"
    return FindingPart(claim, peak(found - expected), tolerance(expected), DECLARATION)


def _check_masks(call: Call) -> Iterator[FindingPart]:
    """Compare the reach of masks, and what they depend on, with their calls."""
    places = torch.arange(LONG)[None, None]
    for mask in list_position_masks(call.mechanism):
        shape = (1, call.q.shape[1], LONG, LONG)
        shown, moved = (
            call_mask(mask, Positions(at, at), shape).expand(1, -1, LONG, LONG) for at in (places, places + 3)
        )
        name, reach = type(mask).__name__, mask.find_reach(shape[1])
        if reach is not None:
            beyond = shown & ((places[0, 0, :, None] - places[0, 0]).abs() >= reach)
            claim = f"{name} declares reach = {reach}: no query sees a key at this distance or beyond"
            yield FindingPart(claim, float(beyond.any()), 0.0, DECLARATION)
        if mask.is_by_distance:
            claim = f"{name} declares is_by_distance = True: its pairs depend on distances alone"
            yield FindingPart(claim, float((shown != moved).any()), 0.0, DECLARATION)
