"""How much seeds differ: each arm's SD with its χ² interval, and their ratio with an interval that assumes normality.

The ratio's interval is F's where the arms are independent, and that of Morgan (1939) and Pitman (1939) where their
seeds are paired and so correlated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import chdtri, fdtri, gammaincinv, stdtrit

Interval = tuple[float, float]
UNKNOWN: Interval = (math.nan, math.nan)


@dataclass(frozen=True)
class Spread:
    """The SD of each arm over seeds, their ratio variant/baseline, and 95 % intervals; what cannot be told is NaN."""

    baseline_sd: float
    baseline_interval: Interval
    variant_sd: float
    variant_interval: Interval
    ratio: float
    ratio_interval: Interval
    assumption: str
    """What the intervals rest on, in words that belong beside them."""


def measure_spread(
    baseline: tuple[float, int], variant: tuple[float, int], rho: float | None = None, alpha: float = 0.05
) -> Spread:
    """Measure spread from SD and number of seeds of each arm, and their correlation where seeds are paired."""
    (sd_b, n_b), (sd_v, n_v) = baseline, variant
    ratio = sd_v / sd_b if sd_b > 0 and not math.isnan(sd_v) else math.nan
    if rho is not None:
        interval = paired_ratio_interval(ratio, rho, n_b, alpha)
        assumption = "assuming normality"
    else:
        interval = ratio_interval(ratio, n_b, n_v, alpha)
        assumption = "assuming normality and independent arms"
    return Spread(sd_b, sd_interval(sd_b, n_b, alpha), sd_v, sd_interval(sd_v, n_v, alpha), ratio, interval, assumption)


def sd_interval(sd: float, n: int, alpha: float = 0.05) -> Interval:
    """Return s·√(df/χ²) at both tails: where the SD lies, if scores are normal."""
    if n < 2 or math.isnan(sd):
        return UNKNOWN
    df = n - 1
    low, high = (sd * math.sqrt(df / float(chdtri(df, tail))) for tail in (alpha / 2, 1 - alpha / 2))
    return low, high


def sd_upper_bound(sd: float, df: float, confidence: float = 0.8) -> float:
    """Return the SD that the true one is below with this confidence; plans take it, since a pilot's SD is often low."""
    if not df > 0 or math.isnan(sd):
        return math.nan
    return sd * math.sqrt(df / float(2 * gammaincinv(df / 2, 1 - confidence)))


def ratio_interval(ratio: float, n_b: int, n_v: int, alpha: float = 0.05) -> Interval:
    """Return where the ratio of SDs lies for independent normal arms: ratio/√F at both tails."""
    if min(n_b, n_v) < 2 or math.isnan(ratio):
        return UNKNOWN
    low, high = (ratio / math.sqrt(float(fdtri(n_v - 1, n_b - 1, 1 - tail))) for tail in (alpha / 2, 1 - alpha / 2))
    return low, high


def paired_ratio_interval(ratio: float, rho: float, n: int, alpha: float = 0.05) -> Interval:
    """Return where the ratio of SDs lies for normal arms of correlation ρ: ratio·√(K ∓ √(K² − 1)).

    K = 1 + 2t²(1 − ρ²)/(n − 2), t the quantile of n − 2 degrees of freedom.
    """
    if n < 3 or math.isnan(ratio) or math.isnan(rho):
        return UNKNOWN
    quantile = -float(stdtrit(n - 2, alpha / 2))
    k = 1 + 2 * quantile**2 * (1 - rho**2) / (n - 2)
    root = math.sqrt(k**2 - 1)
    # The product of both ends is 1 in units of the ratio; dividing keeps digits that k − root would lose.
    return ratio / math.sqrt(k + root), ratio * math.sqrt(k + root)
