"""Tests that assume no distribution: all flips of the differences' signs, all ways to deal the scores to two arms.

Beside each p stands the smallest one that so many seeds allow: five pairs cannot reach 0.05 (2/2⁵ = 0.0625).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .scores import Numbers

MOST = 1 << 20
"""So many arrangements are gone through, of sign flips those of 32 pairs; of more, DRAWS are drawn."""
DRAWS = 99_999
BLOCK = 1 << 22
"""Numbers in memory at once while drawing."""
SLACK = 1e-9
"""Sums that should be equal differ by rounding; closer than this, relative to the scores, they count as equal."""


@dataclass(frozen=True)
class Exact:
    """The share of arrangements at least as extreme as the data, and the smallest share there can be."""

    p: float
    smallest: float
    method: str
    is_drawn: bool = False


def sign_flip(differences: Numbers) -> Exact:
    """Test whether differences are symmetric about 0, by all 2ⁿ flips of their signs."""
    n, observed = len(differences), float(differences.sum())
    if 2 ** ((n + 1) // 2) <= MOST >> 4:
        # The sums of one half, each with those of the other half that bring it far enough: 2·2^(n/2), not 2ⁿ.
        first, second = _flipped(differences[: n // 2]), np.sort(_flipped(differences[n // 2 :]))
        limit = abs(observed) - SLACK * float(np.abs(differences).sum())
        above = len(second) - np.searchsorted(second, limit - first, side="left")
        below = np.searchsorted(second, -limit - first, side="right")
        extreme = 2**n if limit <= 0 else int(above.sum() + below.sum())
        return Exact(extreme / 2**n, 2 / 2**n, "sign flips")

    def draw(rng: np.random.Generator, num: int) -> Numbers:
        drawn: Numbers = rng.choice([-1.0, 1.0], size=(num, n)) @ differences
        return drawn

    return _drawn(draw, observed, differences, "sign flips, drawn")


def sign_flip_interval(differences: Numbers, alpha: float = 0.05) -> tuple[float, float]:
    """Return all means that the sign-flip test does not reject at alpha; without limit if n allows no such p.

    The test of a mean μ counts the subsets of differences whose mean is at most μ, so that its limits are order
    statistics of the subset means (Hartigan 1969). Of more than 2²⁰ subsets, 99,999 are drawn.
    """
    n = len(differences)
    if 2**n <= MOST:
        sums, sizes = np.zeros(1), np.zeros(1)
        for difference in differences:
            sums, sizes = np.concatenate([sums, sums + difference]), np.concatenate([sizes, sizes + 1])
    else:
        chosen = np.random.default_rng(0).random((DRAWS, n)) < 0.5
        sums, sizes = chosen @ differences, chosen.sum(axis=1).astype(np.float64)
    means = np.sort(sums[sizes > 0] / sizes[sizes > 0])
    # p(μ) = 2·(1 + how many subset means are at most μ)/2ⁿ.
    outside = math.floor(alpha * (len(means) + 1) / 2)
    if outside < 1:
        return -math.inf, math.inf
    return float(means[outside - 1]), float(means[-outside])


def _flipped(differences: Numbers) -> Numbers:
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    return sums


def permutation(baseline: Numbers, variant: Numbers) -> Exact:
    """Test whether two arms are one distribution, by all ways to deal their scores to arms of these sizes."""
    scores = np.concatenate([baseline, variant])
    # Around their mean, the sum of one arm says by itself how far the arms are apart.
    scores = scores - scores.mean()
    n, total = len(variant), len(scores)
    observed = float(scores[len(baseline) :].sum())
    ways = math.comb(total, n)
    if ways <= MOST:
        smallest = min(1.0, (2 if total == 2 * n else 1) / ways)
        return Exact(_share(_dealt(scores, n), observed, scores), smallest, "permutations")

    def draw(rng: np.random.Generator, num: int) -> Numbers:
        drawn: Numbers = rng.permuted(np.tile(scores, (num, 1)), axis=1)[:, :n].sum(axis=1)
        return drawn

    return _drawn(draw, observed, scores, "permutations, drawn")


def _dealt(scores: Numbers, n: int) -> Numbers:
    """Return the sums of all subsets of n scores: each score joins the sums of one fewer, or stays out."""
    by_size = [np.zeros(1), *(np.zeros(0) for _ in range(n))]
    for score in scores:
        for size in range(n, 0, -1):
            by_size[size] = np.concatenate([by_size[size], by_size[size - 1] + score])
    return by_size[n]


def _drawn(draw: Callable[[np.random.Generator, int], Numbers], observed: float, scores: Numbers, name: str) -> Exact:
    rng = np.random.default_rng(0)
    block, extreme, left = max(1, BLOCK // len(scores)), 0.0, DRAWS
    while left:
        num = min(block, left)
        extreme += _share(draw(rng, num), observed, scores) * num
        left -= num
    # The data are one arrangement themselves, so that a share of 0 cannot be.
    return Exact((round(extreme) + 1) / (DRAWS + 1), 1 / (DRAWS + 1), name, is_drawn=True)


def _share(sums: Numbers, observed: float, scores: Numbers) -> float:
    slack = SLACK * float(np.abs(scores).sum())
    return float(np.mean(np.abs(sums) >= abs(observed) - slack))
