"""How many seeds an effect needs, and what effect so many seeds can detect: the power of the t test by noncentral t.

The spread is the 80 % upper bound of the pilot's: half of all pilots show less than there is, and a plan made from
those comes out too small. Power and exaggeration (Gelman and Carlin 2014) average over the SD that a sample may show:
special functions for the noncentral t lose large effects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy.special import chdtri, ndtr, ndtri, stdtrit

from attnlab.errors import StatisticsError

from .estimate import Noise
from .scores import Numbers
from .spread import sd_upper_bound

POWERS = (0.8, 0.9)
CONFIDENCE = 0.8
MOST_SEEDS = 1_000_000
"""If so many do not suffice, the answer is ∞."""
NODES, WEIGHTS = (np.array(column) / 2 for column in np.polynomial.legendre.leggauss(200))
"""Of Gauss and Legendre, for an integral from 0 to 1; nodes are relative to its middle."""


@dataclass(frozen=True)
class Plan:
    """Seeds an arm that detect the smallest effect of interest, and what the present number detects.

    sd: the SD of a difference of one seed. sd_bound: the upper bound that the plan takes. seeds: by power, ∞ where no
    number will do since examples are what is lacking. detectable: by power, in metric units. more: seeds that would
    settle the question if the difference stays where it is; 0 if it is decided, NaN if that is unknown.
    """

    smallest: float
    present: int
    sd: float
    sd_bound: float
    seeds: dict[float, float]
    detectable: dict[float, float]
    more: float = math.nan


def make_plan(noise: Noise, present: int, smallest: float, alpha: float = 0.05) -> Plan:
    """Plan from a pilot's noise; everything is NaN where a pilot of one seed shows none."""
    sd, expected = math.sqrt(noise.per_seed), at_upper_bound(noise)
    if math.isnan(expected.per_seed):
        nothing = dict.fromkeys(POWERS, math.nan)
        return Plan(smallest, present, sd, math.nan, nothing, nothing)
    seeds = {power: seeds_needed(expected, smallest, power, alpha) for power in POWERS}
    detectable = {power: detectable_effect(expected, present, power, alpha) for power in POWERS}
    return Plan(smallest, present, sd, math.sqrt(expected.per_seed), seeds, detectable)


def at_upper_bound(noise: Noise) -> Noise:
    """Return the noise that there is at most, with 80 % confidence."""
    return replace(noise, per_seed=sd_upper_bound(math.sqrt(noise.per_seed), noise.df, CONFIDENCE) ** 2)


def more_seeds(noise: Noise, present: int, difference: float, smallest: float, alpha: float = 0.05) -> float:
    """Return how many more seeds an arm are likely to settle a question, given the difference so far.

    If the difference stays where it is, an interval settles it that leaves out 0, or the smallest effect; the farther
    of the two is the easier, and gets 80 % power.
    """
    distance = max(abs(difference), smallest - abs(difference))
    return max(1.0, seeds_needed(at_upper_bound(noise), distance, POWERS[0], alpha) - present)


def power_of(noise: Noise, n: float, effect: float, alpha: float = 0.05) -> float:
    """Return how often n seeds an arm detect an effect at two-sided alpha."""
    return power_at(math.sqrt(noise.per_seed / n + noise.fixed), noise.growth * (n - 1), effect, alpha)


def seeds_needed(noise: Noise, effect: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the fewest seeds an arm that detect an effect with this power; ∞ where no number does."""
    if not 0 < power < 1:
        raise StatisticsError(f"power must be between 0 and 1, and {power} came; 0.8 is usual")
    if not effect > 0:
        raise StatisticsError(f"the effect to detect must be above 0, and {effect} came")
    # Where a normal test would have enough; t asks for a few more.
    normal = float(ndtri(power) - ndtri(alpha / 2))
    room = (effect / normal) ** 2 - noise.fixed
    if room <= 0 or noise.per_seed / room > MOST_SEEDS:
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
    """Return the smallest effect that n seeds an arm detect with this power; NaN with fewer than two seeds."""
    if n < 2:
        return math.nan
    unit = math.sqrt(noise.per_seed / n + noise.fixed)
    if unit == 0:
        return 0.0
    high = 1.0
    while power_of(noise, n, high * unit, alpha) < power:
        high *= 2
    found = scipy.optimize.brentq(lambda effect: power_of(noise, n, effect * unit, alpha) - power, 0.0, high, xtol=1e-6)
    return float(found) * unit


def power_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return how often an effect is found at two-sided alpha, given the standard error and its degrees of freedom."""
    if se <= 0:
        return 1.0
    if not df > 0:
        return math.nan
    shift, limits = abs(effect) / se, _limits(df, alpha)
    return float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))


def exaggeration_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return the mean size of the differences that are found, over the true effect: 2.6 is 2.6 times too large."""
    if se <= 0:
        return 1.0
    if not df > 0:
        return math.nan
    shift, limits = abs(effect) / se, _limits(df, alpha)
    # E[|x|; |x| > c] of a normal x with mean `shift` and SD 1.
    above = shift * ndtr(shift - limits) + _density(limits - shift)
    below = -shift * ndtr(-shift - limits) + _density(limits + shift)
    found = float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))
    return float(WEIGHTS @ (above + below)) / (found * shift) if found > 0 else math.inf


def _limits(df: float, alpha: float) -> Numbers:
    """The difference that is just found, in true standard errors, at each node of the SD that a sample may show."""
    shown: Numbers = np.sqrt(chdtri(df, 0.5 - NODES) / df)
    return -float(stdtrit(df, alpha / 2)) * shown


def _density(x: Numbers) -> Numbers:
    density: Numbers = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return density
