"""Value path: what a stage on the path of the values does to their variance at initialisation.

Var[V + αR] = Var V + α²·Var R + 2α·Cov(V, R). The last term may be negative, so the variance can fall as well as rise;
and since V = x W grows with the width of x while R does not, the bypass's share of the second moment depends on it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from attnlab.kernels.parameters import initial_values
from attnlab.mechanisms.earlier_tokens import stack_earlier
from attnlab.mechanisms.values import Value

from .check import check
from .finding import Finding, FindingPart
from .subject import VOCAB_SIZE, Subject, read_signs

NAME = "value path"
WIDTHS = (64, 256, 1024)
MIDDLE = 256
HEAD_DIM = 64
NUM_TOKENS = 1024
INITIAL_STD = 0.02
"""The standard deviation of the initial projections of BERT and GPT-2."""


@dataclass(frozen=True)
class Variance:
    """The variance of V and of V' = V + αR, and the terms that explain the difference."""

    before: float
    after: float
    alpha: float
    added: float
    covariance: float
    share: float

    @property
    def predicted(self) -> float:
        """Var V + α²·Var R + 2α·Cov(V, R)."""
        return self.before + self.alpha**2 * self.added + 2 * self.alpha * self.covariance

    @property
    def trend(self) -> str:
        """Whether the variance rises, falls or stays."""
        return "rises" if self.after > self.before else "falls" if self.after < self.before else "stays"


def variance(v: Tensor, r: Tensor, alpha: float) -> Variance:
    """Measure how adding αR changes the variance of V; `share` is αR's part of the second moment of the sum."""
    v, r = v.detach().double(), r.detach().double()
    whole = v + alpha * r
    covariance = ((v - v.mean()) * (r - r.mean())).mean()
    share = (alpha * r).square().mean() / whole.square().mean().clamp(min=1e-300)
    before, after, added = (float(t.var(correction=0)) for t in (v, whole, r))
    return Variance(before, after, alpha, added, float(covariance), float(share))


@check(NAME, kind="value_path")
def value_path(subject: Subject) -> Finding | None:
    """Measure each values stage on a layer initialised as in BERT and GPT-2, at several widths."""
    if not subject.mechanism.values:
        return None
    parts, sentences, data = [], [], {}
    for stage in subject.mechanism.values:
        moments = {width: _measure(subject, stage, width) for width in WIDTHS}
        parts += [part for width in WIDTHS for part in _list_parts(stage, width, moments[width])]
        sentences.append(_describe(stage, moments))
        data[str(stage)] = {
            str(width): {**vars(moment), "predicted": moment.predicted} for width, moment in moments.items()
        }
    broken = [part for part in parts if not math.isfinite(part.figure)]
    if broken:
        return Finding(
            NAME, False, len(broken), 0.0, f"The {broken[0].name} is not a finite number.",
            f"'{broken[0].note}'", judged=False, parts=tuple(parts),
        )  # fmt: skip
    ratio = moments[MIDDLE].after / moments[MIDDLE].before
    return Finding(NAME, True, ratio, None, " ".join(sentences), judged=False, parts=tuple(parts), data=data)


def _measure(subject: Subject, stage: Value, width: int) -> Variance:
    """Apply a stage to V = x W, for x of unit variance and W as it is initialised."""
    num_heads = width // HEAD_DIM
    draw = torch.Generator().manual_seed(subject.seed)
    x, first_x = (torch.randn(NUM_TOKENS, width, generator=draw, dtype=torch.float64) for _ in range(2))
    W, first_W = (INITIAL_STD * torch.randn(width, width, generator=draw, dtype=torch.float64) for _ in range(2))

    def split(t: Tensor) -> Tensor:
        return t.reshape(1, NUM_TOKENS, num_heads, HEAD_DIM).transpose(1, 2)

    sizes = (num_heads, HEAD_DIM, HEAD_DIM)
    learned = initial_values(subject.mechanism, *sizes, subject.seed, vocab_size=VOCAB_SIZE)
    p = subject.mechanism.params_of(stage, {name: value.double() for name, value in learned.items()})
    v = split(x @ W)
    alpha = stage.strength or 1.0
    given = {"tokens": read_signs(split(x))} if "tokens" in stage.inputs else {}
    if "before" in stage.inputs:
        given["before"] = stack_earlier(stage, v, lambda t: functional.pad(t, (0, 0, 1, -1)))
    return variance(v, (stage(v, split(x), split(first_x @ first_W), p, **given) - v) / alpha, alpha)


def _list_parts(stage: Value, width: int, moments: Variance) -> list[FindingPart]:
    figures = {
        "variance before": moments.before, "variance after": moments.after,
        "variance by the identity": moments.predicted, "covariance": moments.covariance,
        "share of the second moment": moments.share,
    }  # fmt: skip
    return [
        FindingPart(f"{name}, of '{stage}' at width {width}", figure, None, str(stage))
        for name, figure in figures.items()
    ]


def _describe(stage: Value, moments: dict[int, Variance]) -> str:
    middle = moments[MIDDLE]
    tensor = {"v": "values", "q": "queries", "k": "keys"}[stage.target]
    change = f"{middle.trend}, {middle.before:.3g} to {middle.after:.3g}"
    sentence = f"'{stage}' at width {MIDDLE}: the variance of the {tensor} {change}"
    if stage.strength is not None:
        shares = ", ".join(f"{moment.share:.0%} at width {width}" for width, moment in moments.items())
        sentence += f" (α {stage.strength:g}, covariance {middle.covariance:.2g}); "
        sentence += f"the {stage.name} is {shares} of the second moment"
    return sentence.replace("-", "−") + "."
