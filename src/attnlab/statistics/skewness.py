"""Skewed differences: a t interval is too short on the side of the long tail, so that end is moved out.

A sample of few seeds often misses the long tail, and its mean is then too far from the tail with too small an SD. The
end of the interval on the tail's side is taken 1 + 6·(|κ| − 0.1) times as far where |κ| is above 0.1, κ the skewness of
the mean (g/√n for n paired differences of skewness g). Johnson's (1978) correction grows with κ too, by a factor of
about 1, which is too small with the skewness that so few seeds show. Fewer than 7 paired seeds often show nothing of
the tail, and no exact test can object, so both ends are taken 1.35 times as far. docs/decisions/0032 has the
simulations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from .estimate import Estimate
from .scores import ArmScores, Numbers

GUARD, TOLERATED = 6.0, 0.1
"""How much farther an end is taken per unit of κ, and the κ up to which it is not."""
FEWEST_FOR_EXACT = 7
"""Pairs from which the exact test may overrule t: with fewer it is below 0.05 for one arrangement alone."""
FEW_SEEDS_FACTOR = 1.35
"""How much farther both ends are taken with fewer pairs than that."""
FEWEST_AT_ANY_TIME = 11
"""Pairs below which the same holds for open-ended looks, which no exact test overrules."""


@dataclass(frozen=True)
class Skew:
    """How skewed the differences are, and how much farther each end of a t interval is taken for it."""

    skewness: float = float("nan")
    low: float = 1.0
    high: float = 1.0

    def widen(self, factor: float) -> Skew:
        """Return it with both ends taken farther by a factor; unchanged if the skewness is unknown."""
        return self if math.isnan(self.skewness) else replace(self, low=factor * self.low, high=factor * self.high)


def measure_skew(found: Estimate, arms: tuple[ArmScores, ArmScores], paired: bool) -> Skew:
    """Measure skewness from the scores of each seed and, if they are independent, of each example."""
    baseline, variant = (arm.per_seed for arm in arms)
    n = min(len(baseline), len(variant))
    if n < 3 or not found.se > 0:
        return Skew()
    parts = [variant - baseline] if paired else [variant, -baseline]
    # Large clusters look like a long tail, and have been allowed for by their degrees of freedom.
    if arms[0].num_examples is not None and arms[0].num_clusters is None:
        parts.append(arms[1].values.mean(axis=0) - arms[0].values.mean(axis=0))
    # With the variance of n rather than n − 1, so that κ·√n of paired differences is their skewness g.
    spread = found.se * ((n - 1) / n) ** 0.5
    of_mean = sum(_third_moment(part / spread) / len(part) ** 2 for part in parts)
    low, high = (1 + GUARD * max(0.0, side * of_mean - TOLERATED) for side in (-1, 1))
    return Skew(of_mean * n**0.5, low, high)


def few_seeds_factor(num_seeds: float, paired: bool, fewest: int = FEWEST_FOR_EXACT) -> float:
    """Return how much farther the ends of an interval are taken because so few pairs cannot show a long tail."""
    return FEW_SEEDS_FACTOR if paired and num_seeds < fewest else 1.0


def find_t_level(level: float, df: float, num_seeds: float, paired: bool) -> float:
    """Return the level at which a plain t test finds what the guarded one finds in symmetric differences."""
    factor = few_seeds_factor(num_seeds, paired)
    return level if factor == 1 or not df > 0 else 2 * float(stdtr(df, factor * float(stdtrit(df, level / 2))))


def _third_moment(values: Numbers) -> float:
    return float(np.mean((values - values.mean()) ** 3))
