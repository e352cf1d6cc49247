"""Skewed differences: a t interval is too short on the side of the long tail, so that end is moved out.

A sample of few seeds often misses the long tail, and its mean is then too far from the tail with too small an SD. The
end of the interval on the tail's side is taken 1 + 6·(|κ| − 0.1) times as far where |κ| is above 0.1, κ the skewness of
the mean (g/√n for n paired differences of skewness g). Johnson's (1978) correction grows with κ too, by a factor of
about 1, which is too small with the skewness that so few seeds show. docs/decisions/0032 has the simulations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .estimate import Estimate
from .scores import Arm, Numbers

GUARD, TOLERATED = 6.0, 0.1
"""How much farther an end is taken per unit of κ, and the κ up to which it is not."""
FEWEST_FOR_EXACT = 7
"""Pairs from which the exact test may overrule t: with fewer it is below 0.05 for one arrangement alone."""


@dataclass(frozen=True)
class Skew:
    """How skewed the differences are, and how much farther each end of a t interval is taken for it."""

    skewness: float = float("nan")
    low: float = 1.0
    high: float = 1.0


def measure_skew(found: Estimate, arms: tuple[Arm, Arm] | None, paired: bool) -> Skew:
    """Measure skewness from the scores of each seed; unknown if only summaries are known."""
    if arms is None:
        return Skew()
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


def _third_moment(values: Numbers) -> float:
    return float(np.mean((values - values.mean()) ** 3))
