"""What a weights stage sees at a masked pair: a stand-in, the score of a visible pair of the same row.

Its weight is set to 0 afterwards, so two things matter. Arithmetic that is finite at visible scores (a product with 0,
a square, a logarithm) must be finite there too, forward and backward; at −∞ it would not be. And no normalisation may
count it: a stage that asks for `visible` excludes it itself; the others are tested once (`needs_renormalising`).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.mechanisms import Weights
from attnlab.mechanisms.stage import check_result

RENORMALISED: dict[Weights, bool] = {}
"""The stages that were tested, and whether their weights are divided by their sum over visible pairs."""

ROUNDINGS = 64
"""How many roundings two results of the same equation may differ by."""

NOTHING = 0.5
"""The scores of a row that sees nothing: a value at which common functions are defined and have no pole."""


def fill_standins(scores: Tensor, visible: Tensor, empty: Tensor | None) -> Tensor:
    """Replace the scores of masked pairs by that of the first visible pair of the row, without its gradient."""
    first = visible.to(torch.uint8).argmax(-1, keepdim=True).expand(*scores.shape[:-1], 1)
    standin = scores.detach().gather(-1, first)
    return torch.where(visible, scores, standin if empty is None else standin.masked_fill(empty, NOTHING))


def needs_renormalising(stage: Weights, run: Callable[[Tensor], Tensor], scores: Tensor, visible: Tensor) -> bool:
    """Test, once per process, how masked pairs affect a stage that does not ask for `visible`.

    False: not at all, each weight depends only on its own score. True: the weights of a row sum to 1 over all pairs,
    so dividing by their sum over visible pairs excludes the others exactly, as for a softmax of any function. A stage
    that depends on them in another way is refused.
    """
    if stage in RENORMALISED or torch.compiler.is_compiling():
        return RENORMALISED.get(stage, False)
    is_visible = visible.expand(scores.shape)
    if bool(is_visible.all()):
        return False
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        results, is_finite = [], True
        for shift in (0.0, 1.0):
            torch.manual_seed(0)
            w = run(torch.where(visible, scores, scores + shift))
            check_result(stage, w, scores.shape)
            is_finite &= bool(w.isfinite().all())
            results.append(w.double().nan_to_num())
    rounding = ROUNDINGS * torch.finfo(scores.dtype).eps
    first, second = (w.masked_fill(~is_visible, 0) for w in results)
    sums_to_one = all(float((w.sum(-1) - 1).abs().max()) <= rounding for w in results)
    if _are_close(first, second, rounding):
        RENORMALISED[stage] = False
    elif sums_to_one and _are_close(renormalise(first), renormalise(second), rounding):
        RENORMALISED[stage] = True
    elif not is_finite:
        raise MechanismError(
            f"the weights of '{stage}' are not finite for finite scores, from {float(scores.min()):.3g} to "
            f"{float(scores.max()):.3g}: a logarithm or root of a negative number, a division by 0 or an overflow?"
        )
    else:
        raise MechanismError(
            f"the weights of '{stage}' depend on masked pairs: it normalises over a whole row. Ask for the visible "
            "pairs, `def __call__(self, scores, n, p, *, visible)`, and exclude the others right before you "
            "normalise, as `masked_softmax(scores, visible)` does"
        )
    return RENORMALISED[stage]


def renormalise(w: Tensor) -> Tensor:
    """Divide the weights of each row by their sum; a row of zeros stays zero."""
    total = w.sum(-1, keepdim=True)
    return w / torch.where(total == 0, torch.ones_like(total), total)


def _are_close(first: Tensor, second: Tensor, rounding: float) -> bool:
    return float((second - first).abs().max()) <= rounding * float(first.abs().max())
