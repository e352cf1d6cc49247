"""Value path: what a stage on the path of the values does to their variance at initialisation.

Var[V + αR] = Var V + α²·Var R + 2α·Cov(V, R). The last term may be negative, so the variance can fall as well as rise;
and since V = x W grows with the width of x while R does not, the bypass's share of the second moment depends on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.kernels.attend import initial_values
from attnlab.mechanisms.values import Value

from .check import check
from .finding import Finding, FindingPart
from .subject import Subject

NAME = "value path"
WIDTHS = (64, 256, 1024)
MIDDLE = 256
HEAD_DIM = 64
NUM_TOKENS = 1024
INITIAL_STD = 0.02
"""What BERT and GPT-2 draw their projections with."""


@dataclass(frozen=True)
class Variance:
    """The variance of V and of V' = V + αR, and what explains the difference."""

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
        """Whether the variance rose or fell."""
        return "rises" if self.after > self.before else "falls" if self.after < self.before else "stays"


def variance(v: Tensor, r: Tensor, alpha: float) -> Variance:
    """Measure what adding αR does to the variance of V; `share` is αR's part of the second moment of the sum."""
    v, r = v.detach().double(), r.detach().double()
    whole = v + alpha * r
    covariance = ((v - v.mean()) * (r - r.mean())).mean()
    return Variance(
        before=float(v.var(correction=0)),
        after=float(whole.var(correction=0)),
        alpha=alpha,
        added=float(r.var(correction=0)),
        covariance=float(covariance),
        share=float((alpha * r).square().mean() / whole.square().mean().clamp(min=1e-300)),
    )


@check(NAME, kind="value_path")
def value_path(subject: Subject) -> Finding | None:
    """Measure each values stage on a layer as BERT and GPT-2 initialise it, at several widths."""
    if not subject.mechanism.values:
        return None
    parts, said, data = [], [], {}
    for stage in subject.mechanism.values:
        found = {width: at_width(subject, stage, width) for width in WIDTHS}
        middle = found[MIDDLE]
        parts += [part for width, moments in found.items() for part in described(stage, width, moments)]
        said.append(sentence(stage, found))
        data[str(stage)] = {
            str(width): {**vars(moments), "predicted": moments.predicted} for width, moments in found.items()
        }
    broken = [part for part in parts if not math.isfinite(part.figure)]
    if broken:
        return Finding(
            NAME, False, len(broken), 0.0, f"The {broken[0].name} is not a finite number.",
            f"'{broken[0].note}'", judged=False, parts=tuple(parts),
        )  # fmt: skip
    return Finding(
        NAME, True, middle.after / middle.before, None, " ".join(said), judged=False, parts=tuple(parts), data=data
    )


def at_width(subject: Subject, stage: Value, width: int) -> Variance:
    """Let a stage act on V = x W, for x of unit variance and W as it is initialised."""
    num_heads = width // HEAD_DIM
    draw = torch.Generator().manual_seed(subject.seed)
    x, first_x = (torch.randn(NUM_TOKENS, width, generator=draw, dtype=torch.float64) for _ in range(2))
    W, first_W = (INITIAL_STD * torch.randn(width, width, generator=draw, dtype=torch.float64) for _ in range(2))

    def split(t: Tensor) -> Tensor:
        return t.reshape(1, NUM_TOKENS, num_heads, HEAD_DIM).transpose(1, 2)

    mechanism = subject.mechanism
    learned = initial_values(mechanism, num_heads, HEAD_DIM, HEAD_DIM, subject.seed)
    p = mechanism.params_of(stage, {name: value.double() for name, value in learned.items()})
    v = split(x @ W)
    alpha = stage.strength or 1.0
    return variance(v, (stage(v, split(x), split(first_x @ first_W), p) - v) / alpha, alpha)


def described(stage: Value, width: int, moments: Variance) -> list[FindingPart]:
    """List the measured moments."""
    at = f"of '{stage}' at width {width}"
    return [
        FindingPart(f"variance before, {at}", moments.before, None, str(stage)),
        FindingPart(f"variance after, {at}", moments.after, None, str(stage)),
        FindingPart(f"variance by the identity, {at}", moments.predicted, None, str(stage)),
        FindingPart(f"covariance, {at}", moments.covariance, None, str(stage)),
        FindingPart(f"share of the second moment, {at}", moments.share, None, str(stage)),
    ]


def sentence(stage: Value, found: dict[int, Variance]) -> str:
    """Explain to a student what the stage does to the variance."""
    middle = found[MIDDLE]
    tensor = {"v": "values", "q": "queries", "k": "keys"}[stage.target]
    change = f"{middle.trend}, {middle.before:.3g} to {middle.after:.3g}"
    said = f"'{stage}' at width {MIDDLE}: the variance of the {tensor} {change}"
    if stage.strength is not None:
        shares = ", ".join(f"{moments.share:.0%} at width {width}" for width, moments in found.items())
        said += f" (α {stage.strength:g}, covariance {middle.covariance:.2g}); "
        said += f"the {stage.name} is {shares} of the second moment"
    return said.replace("-", "−") + "."
