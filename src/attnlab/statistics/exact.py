"""Tests without distributional assumptions: all sign flips of the differences, all assignments of scores to two arms.

Each p-value comes with the smallest one that is possible with so many seeds: five pairs cannot reach 0.05
(2/2⁵ = 0.0625).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .scores import Numbers

MAX_ENUMERATED = 1 << 20
"""Up to this many arrangements are enumerated (sign flips: those of 32 pairs); beyond that, DRAWS are sampled."""
DRAWS = 99_999
BLOCK = 1 << 22
"""Numbers in memory at once while sampling."""
SLACK = 1e-9
"""Sums closer than this, relative to the scores, count as equal, because of rounding."""


@dataclass(frozen=True)
class Exact:
    """The share of arrangements at least as extreme as the data, and the smallest share that is possible."""

    p: float
    smallest: float
    method: str
    is_drawn: bool = False


def sign_flip(differences: Numbers) -> Exact:
    """Test whether differences are symmetric about 0, by all 2ⁿ sign flips."""
    n, observed = len(differences), float(differences.sum())
    if 2 ** ((n + 1) // 2) > MAX_ENUMERATED >> 4:
        return _sample_p(
            lambda rng, num: rng.choice([-1.0, 1.0], size=(num, n)) @ differences, observed, differences, "sign flips"
        )
    # Pair each sum of the first half with those of the second half that make it extreme: 2·2^(n/2) sums, not 2ⁿ.
    first, second = _flip_signs(differences[: n // 2]), np.sort(_flip_signs(differences[n // 2 :]))
    limit = abs(observed) - SLACK * float(np.abs(differences).sum())
    above = len(second) - np.searchsorted(second, limit - first, side="left")
    below = np.searchsorted(second, -limit - first, side="right")
    num_extreme = 2**n if limit <= 0 else int(above.sum() + below.sum())
    return Exact(num_extreme / 2**n, 2 / 2**n, "sign flips")


def sign_flip_interval(differences: Numbers, alpha: float = 0.05) -> tuple[float, float]:
    """Return the means that the sign-flip test does not reject at alpha; infinite if n allows no such p-value.

    The test of a mean μ counts the subsets of differences whose mean is at most μ, so its limits are order statistics
    of the subset means (Hartigan 1969). Of more than 2²⁰ subsets, 99,999 are sampled.
    """
    n = len(differences)
    if 2**n <= MAX_ENUMERATED:
        sums, sizes = np.zeros(1), np.zeros(1)
        for difference in differences:
            sums, sizes = np.concatenate([sums, sums + difference]), np.concatenate([sizes, sizes + 1])
    else:
        chosen = np.random.default_rng(0).random((DRAWS, n)) < 0.5
        sums, sizes = chosen @ differences, chosen.sum(axis=1).astype(np.float64)
    means = np.sort(sums[sizes > 0] / sizes[sizes > 0])
    # p(μ) = 2·(1 + number of subset means at most μ)/2ⁿ.
    num_outside = math.floor(alpha * (len(means) + 1) / 2)
    if num_outside < 1:
        return -math.inf, math.inf
    return float(means[num_outside - 1]), float(means[-num_outside])


def _flip_signs(differences: Numbers) -> Numbers:
    sums = np.zeros(1)
    for difference in differences:
        sums = np.concatenate([sums + difference, sums - difference])
    return sums


def permutation(baseline: Numbers, variant: Numbers) -> Exact:
    """Test whether two arms have the same distribution, by all assignments of their scores to arms of these sizes."""
    scores = np.concatenate([baseline, variant])
    # After centring, the sum of one arm alone measures the difference of the arms.
    scores = scores - scores.mean()
    n, total = len(variant), len(scores)
    observed, num_ways = float(scores[len(baseline) :].sum()), math.comb(total, n)
    if num_ways <= MAX_ENUMERATED:
        smallest = min(1.0, (2 if total == 2 * n else 1) / num_ways)
        return Exact(_share_extreme(_sum_subsets(scores, n), observed, scores), smallest, "permutations")
    return _sample_p(
        lambda rng, num: rng.permuted(np.tile(scores, (num, 1)), axis=1)[:, :n].sum(axis=1),
        observed, scores, "permutations",
    )  # fmt: skip


def _sum_subsets(scores: Numbers, n: int) -> Numbers:
    """Return the sums of all subsets of n scores."""
    by_size = [np.zeros(1), *(np.zeros(0) for _ in range(n))]
    for score in scores:
        for size in range(n, 0, -1):
            by_size[size] = np.concatenate([by_size[size], by_size[size - 1] + score])
    return by_size[n]


def _sample_p(
    draw: Callable[[np.random.Generator, int], Numbers], observed: float, scores: Numbers, name: str
) -> Exact:  # fmt: skip
    rng = np.random.default_rng(0)
    block, num_extreme = max(1, BLOCK // len(scores)), 0.0
    for start in range(0, DRAWS, block):
        num = min(block, DRAWS - start)
        num_extreme += _share_extreme(draw(rng, num), observed, scores) * num
    # The data themselves are one arrangement, so the share is never 0.
    return Exact((round(num_extreme) + 1) / (DRAWS + 1), 1 / (DRAWS + 1), f"{name}, drawn", is_drawn=True)


def _share_extreme(sums: Numbers, observed: float, scores: Numbers) -> float:
    return float(np.mean(np.abs(sums) >= abs(observed) - SLACK * float(np.abs(scores).sum())))
