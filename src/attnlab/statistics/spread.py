"""The spread over seeds: each arm's SD with its χ² interval, and their ratio with an interval that assumes normality.

The ratio's interval is F's for independent arms, and that of Morgan (1939) and Pitman (1939) for paired seeds.
"""

import math
from dataclasses import dataclass

from scipy.special import chdtri, fdtri, gammaincinv, stdtrit

Interval = tuple[float, float]
UNKNOWN: Interval = (math.nan, math.nan)


@dataclass(frozen=True)
class Spread:
    """The SD of each arm over seeds, their ratio variant/baseline, and 95 % intervals; unknown is NaN."""

    baseline_sd: float
    baseline_interval: Interval
    variant_sd: float
    variant_interval: Interval
    ratio: float
    ratio_interval: Interval
    assumption: str
    """The assumption of the intervals, printed beside them."""


def measure_spread(
    baseline: tuple[float, int], variant: tuple[float, int], rho: float | None = None, alpha: float = 0.05
) -> Spread:
    """Measure spread from SD and number of seeds of each arm, and their correlation if seeds are paired."""
    (sd_b, n_b), (sd_v, n_v) = baseline, variant
    ratio = sd_v / sd_b if sd_b > 0 and not math.isnan(sd_v) else math.nan
    if rho is None:
        interval, assumption = ratio_interval(ratio, n_b, n_v, alpha), "assuming normality and independent arms"
    else:
        interval, assumption = paired_ratio_interval(ratio, rho, n_b, alpha), "assuming normality"
    return Spread(sd_b, sd_interval(sd_b, n_b, alpha), sd_v, sd_interval(sd_v, n_v, alpha), ratio, interval, assumption)


def sd_interval(sd: float, n: int, alpha: float = 0.05) -> Interval:
    """Return the interval of an SD of normal scores, s·√(df/χ²)."""
    if n < 2 or math.isnan(sd):
        return UNKNOWN
    df = n - 1
    low, high = (sd * math.sqrt(df / float(chdtri(df, tail))) for tail in (alpha / 2, 1 - alpha / 2))
    return low, high


def sd_upper_bound(sd: float, df: float, confidence: float = 0.8) -> float:
    """Return the one-sided upper confidence bound of an SD."""
    if not df > 0 or math.isnan(sd):
        return math.nan
    return sd * math.sqrt(df / float(2 * gammaincinv(df / 2, 1 - confidence)))


def ratio_interval(ratio: float, n_b: int, n_v: int, alpha: float = 0.05) -> Interval:
    """Return the interval of the ratio of SDs of independent normal arms, ratio/√F."""
    if min(n_b, n_v) < 2 or math.isnan(ratio):
        return UNKNOWN
    low, high = (ratio / math.sqrt(float(fdtri(n_v - 1, n_b - 1, 1 - tail))) for tail in (alpha / 2, 1 - alpha / 2))
    return low, high


def paired_ratio_interval(ratio: float, rho: float, n: int, alpha: float = 0.05) -> Interval:
    """Return the interval of the ratio of SDs of normal arms with correlation ρ, ratio·√(K ∓ √(K² − 1)).

    K = 1 + 2t²(1 − ρ²)/(n − 2), t the quantile of n − 2 degrees of freedom.
    """
    if n < 3 or math.isnan(ratio) or math.isnan(rho):
        return UNKNOWN
    quantile = -float(stdtrit(n - 2, alpha / 2))
    k = 1 + 2 * quantile**2 * (1 - rho**2) / (n - 2)
    # The factors of both ends are reciprocal; dividing avoids the cancellation in K − √(K² − 1).
    factor = math.sqrt(k + math.sqrt(k**2 - 1))
    return ratio / factor, ratio * factor
