"""Hidden pairs: a row's weights are those of its visible keys alone, with the forbidden ones taken out.

That is what a forbidden pair means. A weights stage that counts one in what it normalises by gives a row other weights
where there is something it may not see.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.kernels import reference
from attnlab.kernels.attend import prepare
from attnlab.kernels.call import Call
from attnlab.kernels.standins import fill_standins
from attnlab.mechanisms import Positions

from .finding import FindingPart
from .subject import ROUNDINGS, SHORT, Subject, drawn_mask, largest, noise, peak

NAME = "a row's weights are those of its visible keys alone"


def hidden_pairs(subject: Subject) -> FindingPart:
    """Compare the weights beside forbidden pairs with those of the same scores without them, row by row."""
    inputs = subject.inputs(1, SHORT, torch.float64)
    learned = {name: p.double() for name, p in subject.parameters.items()}
    # Causal as well, so that the first row sees a single key, and log n is 0.
    pairs = drawn_mask("pairs", SHORT, SHORT) & torch.ones(SHORT, SHORT, dtype=torch.bool).tril()
    call, _ = prepare(
        inputs["q"], inputs["k"], inputs["v"], subject.mechanism, mask=pairs, parameters=learned,
        x=inputs.get("x"), first=inputs.get("first"),
    )  # fmt: skip
    score = call.mechanism.score
    scores = score(call.q, call.k, call.params_of(score), **call.needs_of(score, pairs)).detach()
    together = reference.weigh(call, fill_standins(scores, pairs, None), pairs).detach()
    apart, size = [], []
    for i in range(SHORT):
        seen = pairs[0, 0, i].nonzero()[:, 0]
        alone = weigh_alone(call, scores[:, :, i : i + 1, seen], i, seen)
        apart.append(peak(together[:, :, i : i + 1, seen] - alone))
        size.append(noise(alone, ROUNDINGS[torch.float64]))
    return FindingPart(NAME, largest(apart), largest(size), f"'{call.mechanism.weights}' and the pairs it may not see")


def weigh_alone(call: Call, scores: Tensor, row: int, seen: Tensor) -> Tensor:
    """Turn the scores of one row into weights, as if there were no keys but those seen."""
    stage, known = call.mechanism.weights, call.positions
    given = {"visible": torch.ones_like(scores, dtype=torch.bool)}
    if known is not None:
        given["positions"] = Positions(known.queries[..., row : row + 1], known.keys[..., seen])  # type: ignore[assignment]
    n = torch.full((1, 1, 1, 1), len(seen), dtype=scores.dtype)
    asked = {name: given[name] for name in stage.needs if name in given}
    return stage(scores, n, call.params_of(stage), **asked).detach()
