"""Weights: what they are like on random tokens. Sums, signs, exact zeros, entropy, and the share of the first token.

Reported, not judged: a sum other than 1, or a negative weight, is a choice. Only what is not finite fails.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.kernels.attend import weights as weights_of

from .check import check
from .finding import Finding, FindingPart
from .subject import Subject

NAME = "weights"
LENGTH = 96
ENTROPY = "entropy, share of the most"


@check(NAME, kind="weights")
def weight_statistics(subject: Subject) -> Finding:
    """Describe the weights."""
    causal = subject.causalities[-1]
    inputs = subject.inputs(4, LENGTH, torch.float64)
    learned = {name: p.double() for name, p in subject.parameters.items()}
    w = weights_of(
        inputs["q"], inputs["k"], subject.mechanism, causal=causal, parameters=learned, x=inputs.get("x")
    ).detach()
    broken = int((~w.isfinite()).sum())
    if broken:
        where = f"'{subject.mechanism.score}' and '{subject.mechanism.weights}'"
        return Finding(NAME, False, broken, 0.0, "Some weights are not finite numbers.", where, judged=False)
    numbers = describe(w, causal)
    parts = tuple(FindingPart(name, figure) for name, figure in numbers.items())
    return Finding(NAME, True, numbers[ENTROPY], None, sentence(numbers), judged=False, parts=parts, data=numbers)


def describe(w: Tensor, causal: bool) -> dict[str, float]:
    """Return the statistics of weights [b h q k] over the pairs that may meet."""
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


def sentence(numbers: dict[str, float]) -> str:
    """Describe the weights in words."""
    low, high = numbers["smallest sum"], numbers["largest sum"]
    sums = f"sum to {high:.3g}" if high - low < 1e-6 else f"sum to between {low:.2g} and {high:.2g}"
    signs = "never negative" if numbers["negative"] == 0 else f"{numbers['negative']:.0%} are negative"
    zeros = f", {numbers['exactly zero']:.0%} are exactly 0" if numbers["exactly zero"] else ""
    spread = f"their entropy is {numbers[ENTROPY]:.0%} of the most there can be"
    hidden = numbers["share on tokens that may not be seen"]
    later = f"; {hidden:.0%} of them lie on tokens that may not be seen" if hidden > 1e-9 else ""
    return f"A query's weights {sums}, {signs}{zeros}; {spread}{later}.".replace(" -", " −")
