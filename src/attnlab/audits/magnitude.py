"""Magnitude against length: how does the size of the output grow from 32 to 2048 tokens?

Random tokens add up like a random walk, as √n; aligned ones, all the same, add up as n. So dividing by √n keeps random
tokens level and lets aligned ones grow as √n; dividing by n keeps aligned ones level and lets random ones vanish.
Random tokens that all have one value show how the sum of the weights grows.
"""

from __future__ import annotations

import math

import torch

from .check import check
from .finding import Finding, FindingPart, worst
from .subject import HEAD_DIM, NUM_HEADS, Inputs, Mode, Subject

NAME = "magnitude against length"
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
BATCH = 64
KINDS = {"random": "random tokens", "aligned": "aligned ones", "one value": "random ones of one value"}
BOUND = 0.6
"""The largest power of the length that may be: √n, and what a fit to random tokens may add to it."""

LEVEL = 0.1


@check(NAME, kind="magnitude")
def magnitude_against_length(subject: Subject) -> Finding:
    """Fit the power of the length with which the output grows."""
    causal = subject.causalities[-1]
    sizes = {kind: [size(subject, kind, length, causal) for length in LENGTHS] for kind in KINDS}
    parts = tuple(FindingPart(f"power of n, {words}", power(sizes[kind]), BOUND) for kind, words in KINDS.items())
    bad = worst(parts)
    trends = [f"{trend(part.figure)} for {words}" for part, words in zip(parts, KINDS.values(), strict=True)]
    said = f"From {LENGTHS[0]} to {LENGTHS[-1]} tokens the output {', '.join(trends[:-1])} and {trends[-1]}"
    said += "." if bad.passed else ": at lengths beyond those of training it will blow up."
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
    """Draw random tokens, with the same value for all or not; or one token again and again, of dot score 1."""
    if kind != "aligned":
        drawn = subject.inputs(BATCH, length, salt=length)
        same = ("v", "x", "first") if kind == "one value" else ()
        return {name: t[:, :, :1].expand_as(t) if name in same else t for name, t in drawn.items()}
    draw = torch.Generator().manual_seed(subject.seed)
    token = torch.randn(BATCH, NUM_HEADS, 1, HEAD_DIM, generator=draw)
    token = (HEAD_DIM**0.25 * token / token.norm(dim=-1, keepdim=True)).expand(-1, -1, length, -1)
    return dict.fromkeys(("q", "k", "v", "x", "first") if subject.mechanism.values else ("q", "k", "v"), token)


def power(sizes: list[float]) -> float:
    """Fit sizes ∝ lengthᵖ and return p: 0 where there is no output at all, infinite where it is no number.

    Nothing at first and something later is growth that no power describes: infinite too.
    """
    if not all(math.isfinite(found) for found in sizes) or (sizes[0] == 0 < max(sizes)):
        return math.inf
    there = [(length, found) for length, found in zip(LENGTHS, sizes, strict=True) if found > 0]
    if len(there) < 2:
        return 0.0
    x, y = torch.tensor(there, dtype=torch.float64).log().unbind(1)
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def trend(exponent: float) -> str:
    """Say a power of the length in words."""
    if abs(exponent) <= LEVEL:
        return "stays level"
    return f"{'grows' if exponent > 0 else 'shrinks'} as n^{exponent:.2f}".replace("-", "−")
