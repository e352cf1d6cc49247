"""Power analysis: how many seeds a verdict needs to find an effect, and what effect a number of seeds can detect.

Plans use the 80 % upper bound of a pilot's spread, since half of all pilots underestimate it.
"""

import math
from dataclasses import dataclass, replace

import scipy
from scipy.special import ndtri

from attnlab.errors import StatisticsError

from .estimate import Noise
from .power import compute_power
from .spread import sd_upper_bound
from .verdict import MIN_SEEDS

POWERS = (0.8, 0.9)
MAX_SEEDS = 1_000_000
"""If this many do not suffice, the answer is ∞."""


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


def seeds_needed(noise: Noise, effect: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the fewest seeds per arm whose verdict finds an effect with this power; ∞ if no number does."""
    if not 0 < power < 1:
        raise StatisticsError(f"power must be between 0 and 1, not {power}; 0.8 is usual")
    if not effect > 0:
        raise StatisticsError(f"the effect to detect must be above 0, not {effect}")
    # Start from the number that a normal test needs; a verdict needs a few more.
    normal = float(ndtri(power) - ndtri(alpha / 2))
    room = (effect / normal) ** 2 - noise.fixed
    if room <= 0 or noise.per_seed / room > MAX_SEEDS:
        return math.inf
    low, step = max(MIN_SEEDS, math.floor(noise.per_seed / room)) - 1, 1
    while compute_power(noise, low + step, effect, alpha) < power:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_power(noise, middle, effect, alpha) >= power else (middle, high)
    return float(high)


def detectable_effect(noise: Noise, n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest effect that n seeds per arm detect with this power; NaN with too few for a verdict."""
    if n < MIN_SEEDS:
        return math.nan
    unit = math.sqrt(noise.per_seed / n + noise.fixed)
    if unit == 0 or compute_power(noise, n, 0.0, alpha) >= power:
        return 0.0
    high = 1.0
    while compute_power(noise, n, high * unit, alpha) < power:
        high *= 2
    effect = scipy.optimize.brentq(
        lambda size: compute_power(noise, n, size * unit, alpha) - power, 0.0, high, xtol=1e-6
    )
    return float(effect) * unit
