"""Weights: their sums, signs, exact zeros, entropy, and the share of the first token, on random tokens.

Reported without a bound: a sum other than 1, or a negative weight, is a choice. Only weights that are not finite fail.
"""

import torch
from torch import Tensor

from attnlab.kernels.attend import weights

from .check import check
from .finding import Finding, FindingPart
from .subject import Subject

NAME = "weights"
LENGTH = 96
ENTROPY = "entropy, share of the most"


@check(NAME, kind="weights")
def weight_statistics(subject: Subject) -> Finding:
    """Describe the weights."""
    causal, mechanism = subject.causalities[-1], subject.mechanism
    inputs, learned = subject.inputs(4, LENGTH, torch.float64), subject.cast_parameters(torch.float64)
    w = weights(inputs["q"], inputs["k"], mechanism, causal=causal, parameters=learned, x=inputs.get("x")).detach()
    num_broken = int((~w.isfinite()).sum())
    if num_broken:
        where = f"'{mechanism.score}' and '{mechanism.weights}'"
        return Finding(NAME, False, num_broken, 0.0, "Some weights are not finite numbers.", where, judged=False)
    numbers = _compute_statistics(w, causal)
    parts = tuple(FindingPart(name, figure) for name, figure in numbers.items())
    return Finding(NAME, True, numbers[ENTROPY], None, _describe(numbers), judged=False, parts=parts, data=numbers)


def _compute_statistics(w: Tensor, causal: bool) -> dict[str, float]:
    """Return the statistics of weights [b h q k] over the visible pairs."""
    visible = torch.ones(w.shape[-2:], dtype=torch.bool)
    visible = visible.tril() if causal else visible
    sums, total = w.sum(-1), w.abs().sum(-1, keepdim=True).clamp(min=1e-300)
    allowed = w.abs().masked_fill(~visible, 0)
    share = allowed / allowed.sum(-1, keepdim=True).clamp(min=1e-300)
    count = visible.sum(-1)
    several = count > 1
    entropy = -(share * share.clamp(min=1e-300).log()).sum(-1)
    seen = w[..., visible]
    return {
        "smallest sum": float(sums.min()),
        "largest sum": float(sums.max()),
        "negative": float((seen < 0).double().mean()),
        "exactly zero": float((seen == 0).double().mean()),
        ENTROPY: float((entropy[..., several] / count[several].log()).mean()),
        "first token's share": float(share[..., several, 0].mean()),
        "first token's share if all were equal": float((1 / count[several]).mean()),
        "share on tokens that may not be seen": float(1 - (allowed / total).sum(-1)[total[..., 0] > 1e-200].mean()),
    }


def _describe(numbers: dict[str, float]) -> str:
    low, high = numbers["smallest sum"], numbers["largest sum"]
    sums = f"sum to {high:.3g}" if high - low < 1e-6 else f"sum to between {low:.2g} and {high:.2g}"
    signs = "never negative" if numbers["negative"] == 0 else f"{numbers['negative']:.0%} are negative"
    zeros = f", {numbers['exactly zero']:.0%} are exactly 0" if numbers["exactly zero"] else ""
    spread = f"their entropy is {numbers[ENTROPY]:.0%} of the maximum"
    hidden = numbers["share on tokens that may not be seen"]
    later = f"; {hidden:.0%} of them are on tokens that may not be seen" if hidden > 1e-9 else ""
    return f"A query's weights {sums}, {signs}{zeros}; {spread}{later}.".replace(" -", " −")
