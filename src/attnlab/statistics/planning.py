"""Power analysis of the t test: how many seeds an effect needs, and what effect a number of seeds can detect.

Plans use the 80 % upper bound of a pilot's spread, since half of all pilots underestimate it. Power and exaggeration
(Gelman and Carlin 2014) are integrals over the sample SD: library functions of the noncentral t fail for large effects.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy.special import chdtri, ndtr, ndtri, stdtrit

from attnlab.errors import StatisticsError

from .estimate import Noise
from .looks import normal_density
from .scores import Numbers
from .spread import sd_upper_bound

POWERS = (0.8, 0.9)
MAX_SEEDS = 1_000_000
"""If this many do not suffice, the answer is ∞."""
NODES, WEIGHTS = (np.array(column) / 2 for column in np.polynomial.legendre.leggauss(200))
"""Gauss–Legendre quadrature from 0 to 1; nodes are relative to the middle."""


@dataclass(frozen=True)
class Plan:
    """Seeds per arm that detect the smallest effect of interest, and the effects that the present seeds detect.

    sd: the SD of one seed's difference. sd_bound: the upper bound that the plan uses. seeds: by power, ∞ if no number
    suffices because there are too few examples. detectable: by power, in metric units. more: seeds that would settle
    the question if the difference stays as it is; 0 if it is decided, NaN if unknown.
    """

    smallest: float
    present: int
    sd: float
    sd_bound: float
    seeds: dict[float, float]
    detectable: dict[float, float]
    more: float = math.nan


def make_plan(noise: Noise, present: int, smallest: float, alpha: float = 0.05) -> Plan:
    """Plan from a pilot's noise; everything is NaN if the pilot has one seed."""
    sd, expected = math.sqrt(noise.per_seed), at_upper_bound(noise)
    if math.isnan(expected.per_seed):
        unknown = dict.fromkeys(POWERS, math.nan)
        return Plan(smallest, present, sd, math.nan, unknown, unknown)
    seeds = {power: seeds_needed(expected, smallest, power, alpha) for power in POWERS}
    detectable = {power: detectable_effect(expected, present, power, alpha) for power in POWERS}
    return Plan(smallest, present, sd, math.sqrt(expected.per_seed), seeds, detectable)


def at_upper_bound(noise: Noise) -> Noise:
    """Return the noise at the upper limit of its 80 % confidence bound."""
    return replace(noise, per_seed=sd_upper_bound(math.sqrt(noise.per_seed), noise.df) ** 2)


def more_seeds(noise: Noise, present: int, difference: float, smallest: float, alpha: float = 0.05) -> float:
    """Return how many more seeds per arm settle a question with 80 % power if the difference stays as it is.

    An interval settles it that excludes 0 or the smallest effect; the one farther from the difference needs fewer.
    """
    distance = max(abs(difference), smallest - abs(difference))
    return max(1.0, seeds_needed(at_upper_bound(noise), distance, POWERS[0], alpha) - present)


def power_of(noise: Noise, n: float, effect: float, alpha: float = 0.05) -> float:
    """Return the power of n seeds per arm for an effect at two-sided alpha."""
    return power_at(math.sqrt(noise.per_seed / n + noise.fixed), noise.growth * (n - 1), effect, alpha)


def seeds_needed(noise: Noise, effect: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the fewest seeds per arm that detect an effect with this power; ∞ if no number does."""
    if not 0 < power < 1:
        raise StatisticsError(f"power must be between 0 and 1, not {power}; 0.8 is usual")
    if not effect > 0:
        raise StatisticsError(f"the effect to detect must be above 0, not {effect}")
    # Start from the number that a normal test needs; t needs a few more.
    normal = float(ndtri(power) - ndtri(alpha / 2))
    room = (effect / normal) ** 2 - noise.fixed
    if room <= 0 or noise.per_seed / room > MAX_SEEDS:
        return math.inf
    low, step = max(1, math.floor(noise.per_seed / room) - 1), 1
    while power_of(noise, low + step, effect, alpha) < power:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(noise, middle, effect, alpha) >= power else (middle, high)
    return float(high)


def detectable_effect(noise: Noise, n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest effect that n seeds per arm detect with this power; NaN with fewer than two seeds."""
    if n < 2:
        return math.nan
    unit = math.sqrt(noise.per_seed / n + noise.fixed)
    if unit == 0:
        return 0.0
    high = 1.0
    while power_of(noise, n, high * unit, alpha) < power:
        high *= 2
    effect = scipy.optimize.brentq(lambda size: power_of(noise, n, size * unit, alpha) - power, 0.0, high, xtol=1e-6)
    return float(effect) * unit


def power_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return how often an effect is found at two-sided alpha, given the standard error and its degrees of freedom."""
    if se <= 0:
        return 1.0
    if not df > 0:
        return math.nan
    shift, limits = abs(effect) / se, _critical_differences(df, alpha)
    return float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))


def exaggeration_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return the mean size of the differences that are found, relative to the true effect."""
    power = power_at(se, df, effect, alpha)
    if se <= 0 or math.isnan(power):
        return power
    shift, limits = abs(effect) / se, _critical_differences(df, alpha)
    # E[|x|; |x| > c] of a normal x with mean `shift` and SD 1.
    above = shift * ndtr(shift - limits) + normal_density(limits - shift)
    below = -shift * ndtr(-shift - limits) + normal_density(limits + shift)
    return float(WEIGHTS @ (above + below)) / (power * shift) if power > 0 else math.inf


def _critical_differences(df: float, alpha: float) -> Numbers:
    """Return the smallest difference that is found, in true standard errors, at each node of the sample SD."""
    sample_sds: Numbers = np.sqrt(chdtri(df, 0.5 - NODES) / df)
    return -float(stdtrit(df, alpha / 2)) * sample_sds
