"""Magnitude against length: how does the size of the output grow from 32 to 2048 tokens?

Random tokens add up like a random walk, as √n; aligned ones, all the same, add up as n. So dividing by √n keeps random
tokens level and lets aligned ones grow as √n; dividing by n keeps aligned ones level and lets random ones vanish.
"""

from __future__ import annotations

import math

import torch

from .check import check
from .finding import Finding, Part, worst
from .subject import HEAD_DIM, NUM_HEADS, Inputs, Mode, Subject

NAME = "magnitude against length"
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
BATCH = 64
BOUND = 0.6
"""The largest power of the length that may be: √n, and what a fit to random tokens may add to it."""

LEVEL = 0.1


@check(NAME)
def magnitude_against_length(subject: Subject) -> Finding:
    """Fit the power of the length with which the output grows."""
    causal = subject.causalities[-1]
    sizes = {kind: [size(subject, kind, length, causal) for length in LENGTHS] for kind in ("random", "aligned")}
    parts = tuple(Part(f"power of n, {kind} tokens", power(found), BOUND) for kind, found in sizes.items())
    bad = worst(parts)
    random, aligned = (part.figure for part in parts)
    said = (
        f"From {LENGTHS[0]} to {LENGTHS[-1]} tokens the output {trend(random)} for random tokens and {trend(aligned)}"
    )
    said += " for aligned ones" + ("." if bad.passed else ": at lengths beyond those of training it will blow up.")
    return Finding(
        NAME, bad.passed, bad.figure, bad.bound, said,
        "" if bad.passed else f"'{subject.mechanism.weights}': divide=n, sqrt_n or learned would hold it",
        parts=parts, data={"lengths": list(LENGTHS), **sizes},
    )  # fmt: skip


def size(subject: Subject, kind: str, length: int, causal: bool) -> float:
    """Return the root mean square of the last query's outputs."""
    bare, held = subject.projected(tokens(subject, kind, length))
    last = {**held, "q": held["q"][:, :, -1:]}
    with torch.no_grad():
        out = bare.attend(last, Mode(causal))
    return float(out.double().square().mean().sqrt())


def tokens(subject: Subject, kind: str, length: int) -> Inputs:
    """Draw random tokens; or one token again and again, of a length that gives a dot score of 1 with itself."""
    if kind == "random":
        return subject.inputs(BATCH, length, salt=length)
    draw = torch.Generator().manual_seed(subject.seed)
    token = torch.randn(BATCH, NUM_HEADS, 1, HEAD_DIM, generator=draw)
    token = (HEAD_DIM**0.25 * token / token.norm(dim=-1, keepdim=True)).expand(-1, -1, length, -1)
    return dict.fromkeys(("q", "k", "v", "x", "first") if subject.mechanism.values else ("q", "k", "v"), token)


def power(sizes: list[float]) -> float:
    """Fit sizes ∝ lengthᵖ and return p: 0 where there is no output at all, infinite where it is no number."""
    if not all(math.isfinite(found) for found in sizes):
        return math.inf
    if min(sizes) == 0:
        return 0.0
    x = torch.tensor(LENGTHS, dtype=torch.float64).log()
    y = torch.tensor(sizes, dtype=torch.float64).log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def trend(exponent: float) -> str:
    """Say a power of the length in words."""
    if abs(exponent) <= LEVEL:
        return "stays level"
    return f"{'grows' if exponent > 0 else 'shrinks'} as n^{exponent:.2f}".replace("-", "−")
