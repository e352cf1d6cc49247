"""What a weights stage sees at a forbidden pair: a stand-in, the score of a visible pair of the same row.

Its weight is set to 0 afterwards, so only two things matter. The arithmetic must be safe there, forward and backward:
whatever is finite at a visible score (a product with 0, a square, an exponential, a logarithm) is finite at the
stand-in; −∞, or a very low number, is not. And no normalisation may count it: a stage that normalises asks for
`visible`, and one that does not ask is tried out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.mechanisms import Weights

FOUND_POINTWISE: set[Weights] = set()
"""The stages that were tried out and did not depend on the stand-ins."""

ROUNDINGS = 64
"""How many roundings two results of the same equation may differ by."""


NOTHING = 0.5
"""The scores of a row that sees nothing: no function of the field has its pole or the end of its range there."""


def with_standins(scores: Tensor, visible: Tensor, empty: Tensor | None) -> Tensor:
    """Replace the scores of forbidden pairs by that of the first visible pair of the row, without its gradient."""
    first = visible.to(torch.uint8).argmax(-1, keepdim=True).expand(*scores.shape[:-1], 1)
    standin = scores.detach().gather(-1, first)
    return torch.where(visible, scores, standin if empty is None else standin.masked_fill(empty, NOTHING))


def check_normalisation(stage: Weights, run: Callable[[Tensor], Tensor], scores: Tensor, visible: Tensor) -> None:
    """Refuse a stage whose weights depend on forbidden pairs: try it, once a process, with other stand-ins."""
    if stage in FOUND_POINTWISE or torch.compiler.is_compiling():
        return
    is_visible = visible.expand(scores.shape)
    if bool(is_visible.all()):
        return
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        results = []
        for shift in (0.0, 1.0):
            torch.manual_seed(0)
            w = run(torch.where(visible, scores, scores + shift))
            if tuple(w.shape) != tuple(scores.shape):
                return  # refused right after, by its shape
            results.append(w.double().masked_fill(~is_visible, 0).nan_to_num())
    bound = ROUNDINGS * torch.finfo(scores.dtype).eps * float(results[0].abs().max())
    if float((results[1] - results[0]).abs().max()) > bound:
        raise MechanismError(
            f"the weights of '{stage}' depend on pairs that may not meet: it normalises over a whole row. Ask for the "
            "visible pairs, `def __call__(self, scores, n, p, *, visible)`, and leave the others out right before you "
            "normalise, as `masked_softmax(scores, visible)` does"
        )
    FOUND_POINTWISE.add(stage)
