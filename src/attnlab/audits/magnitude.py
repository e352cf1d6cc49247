"""Magnitude against length: how does the size of the output grow from 32 to 2048 tokens?

Random tokens add up like a random walk, as √n; aligned ones, all the same, add up as n. So dividing by √n keeps random
tokens constant and lets aligned ones grow as √n; dividing by n keeps aligned ones constant and lets random ones vanish.
Random tokens that all have one value show how the sum of the weights grows.
"""

import math

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, judge_parts
from .subject import HEAD_DIM, NUM_HEADS, Inputs, Mode, Subject, list_inputs

NAME = "magnitude against length"
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048)
BATCH = 64
KINDS = {"random": "random tokens", "aligned": "aligned ones", "one value": "random ones of one value"}
BOUND = 0.6
"""The largest exponent of the length that is allowed: √n, plus what a fit to random tokens may add to it."""

LEVEL = 0.1


@check(NAME, kind="magnitude", moves_parameters=True)
def magnitude_against_length(subject: Subject) -> Finding:
    """Fit the power of the length with which the output grows."""
    causal = subject.causalities[-1]
    sizes = {kind: [_measure_size(subject, kind, length, causal) for length in LENGTHS] for kind in KINDS}
    parts = [FindingPart(f"power of n, {words}", _fit_power(sizes[kind]), BOUND) for kind, words in KINDS.items()]
    trends = [f"{_describe_power(part.figure)} for {words}" for part, words in zip(parts, KINDS.values(), strict=True)]
    sentence = f"From {LENGTHS[0]} to {LENGTHS[-1]} tokens the output {', '.join(trends[:-1])} and {trends[-1]}"
    return judge_parts(
        NAME, parts,
        passed=f"{sentence}.",
        failed=lambda _: f"{sentence}: at lengths beyond those of training it will blow up.",
        where=lambda _: f"'{subject.mechanism.weights}': divide=n, sqrt_n or learned would limit it",
        data={"lengths": list(LENGTHS), **sizes},
    )  # fmt: skip


def _measure_size(subject: Subject, kind: str, length: int, causal: bool) -> float:
    """Return the root mean square of the last query's outputs; 0 where a sum of so many values may round to as much."""
    core, projected = subject.apply_projection_stages(_draw_tokens(subject, kind, length))
    with torch.no_grad():
        out = core.attend({**projected, "q": projected["q"][:, :, -1:]}, Mode(causal))
    rounding = length * torch.finfo(out.dtype).eps * _measure_rms(projected["v"])
    size = _measure_rms(out)
    return 0.0 if size <= rounding else size


def _measure_rms(t: Tensor) -> float:
    return float(t.detach().double().square().mean().sqrt())


def _draw_tokens(subject: Subject, kind: str, length: int) -> Inputs:
    """Draw random tokens, with one value for all or not; or repeat one token, of dot score 1."""
    if kind != "aligned":
        inputs = subject.inputs(BATCH, length, salt=length)
        same = ("v", "x", "first") if kind == "one value" else ()
        return {name: t[:, :, :1].expand_as(t) if name in same else t for name, t in inputs.items()}
    draw = torch.Generator().manual_seed(subject.seed)
    token = torch.randn(BATCH, NUM_HEADS, 1, HEAD_DIM, generator=draw)
    token = (HEAD_DIM**0.25 * token / token.norm(dim=-1, keepdim=True)).expand(-1, -1, length, -1)
    return dict.fromkeys(list_inputs(subject.mechanism), token)


def _fit_power(sizes: list[float]) -> float:
    """Fit sizes ∝ lengthᵖ and return p: 0 if there is no output at all, infinite if it is not finite.

    An output that is 0 at first and not later grows faster than any power: infinite too.
    """
    if not all(math.isfinite(size) for size in sizes) or (sizes[0] == 0 < max(sizes)):
        return math.inf
    points = [(length, size) for length, size in zip(LENGTHS, sizes, strict=True) if size > 0]
    if len(points) < 2:
        return 0.0
    x, y = torch.tensor(points, dtype=torch.float64).log().unbind(1)
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def _describe_power(exponent: float) -> str:
    if abs(exponent) <= LEVEL:
        return "stays level"
    return f"{'grows' if exponent > 0 else 'shrinks'} as n^{exponent:.2f}".replace("-", "−")
