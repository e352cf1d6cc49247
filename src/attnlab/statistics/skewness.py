"""Skewed differences: a t interval is too short on the side of the long tail, so it is widened there.

Few seeds often miss the long tail, and their mean is then too far from it, with too small an SD. On the tail's side the
interval is 1 + 6·(|κ| − 0.1) times as wide if |κ| is above 0.1, where κ is the skewness of the mean (g/√n for n paired
differences of skewness g); Johnson's (1978) correction has a factor of about 1, too small for so few seeds. Fewer than
7 pairs often contain nothing of the tail, and the exact test cannot reject with them, so both sides are 1.35 times as
wide. docs/decisions/0032 has the simulations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .estimate import Estimate
from .scores import ArmScores, Numbers

GUARD, TOLERATED = 6.0, 0.1
"""How much wider a side gets per unit of κ, and the κ up to which it does not."""
MIN_SEEDS_FOR_EXACT = 7
"""Pairs from which the exact test may overrule t: with fewer, only one arrangement has p < 0.05."""
FEW_SEEDS_FACTOR = 1.35
"""How much wider the interval is with fewer pairs than that."""
MIN_SEEDS_AT_ANY_TIME = 11
"""The same limit for open-ended looks, which have no exact test."""


@dataclass(frozen=True)
class Skew:
    """The skewness of the differences, and the factor by which it widens each side of a t interval."""

    skewness: float = math.nan
    low: float = 1.0
    high: float = 1.0

    def widen(self, factor: float) -> Self:
        """Return it with both sides wider by a factor; unchanged if the skewness is unknown."""
        return self if math.isnan(self.skewness) else replace(self, low=factor * self.low, high=factor * self.high)


def measure_skew(estimate: Estimate, arms: tuple[ArmScores, ArmScores], paired: bool) -> Skew:
    """Measure skewness over seeds and, if they are independent, over examples."""
    baseline, variant = (arm.per_seed for arm in arms)
    n = min(len(baseline), len(variant))
    if n < 3 or not estimate.se > 0:
        return Skew()
    parts = [variant - baseline] if paired else [variant, -baseline]
    # Large clusters look like a long tail; their degrees of freedom account for them already.
    if arms[0].num_examples is not None and arms[0].num_clusters is None:
        parts.append(arms[1].values.mean(axis=0) - arms[0].values.mean(axis=0))
    return weigh_skew(parts, estimate.se, n)


def weigh_skew(parts: Sequence[Numbers], se: float, n: int) -> Skew:
    """Measure the skewness of a sum of the means of independent parts. n: the fewest seeds of an arm."""
    # With the variance of n rather than n − 1, so that κ·√n of paired differences is their skewness g.
    spread = se * ((n - 1) / n) ** 0.5
    scaled = [part / spread for part in parts]
    of_mean = sum(float(np.mean((part - part.mean()) ** 3)) / len(part) ** 2 for part in scaled)
    low, high = (1 + GUARD * max(0.0, side * of_mean - TOLERATED) for side in (-1, 1))
    return Skew(of_mean * n**0.5, low, high)


def few_seeds_factor(num_seeds: float, paired: bool, fewest: int = MIN_SEEDS_FOR_EXACT) -> float:
    """Return how much wider an interval is because so few pairs cannot show a long tail."""
    return FEW_SEEDS_FACTOR if paired and num_seeds < fewest else 1.0
