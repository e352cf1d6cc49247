"""How large a difference is: Hedges' g, and how often a seed of the variant beats one of the baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .scores import Numbers, sd_of


@dataclass(frozen=True)
class Effects:
    """Sizes of a difference without its unit. What cannot be told is NaN; `num_ahead` is None without pairs.

    hedges_g: the difference in standard deviations, corrected for small n. probability: how often a seed of the
    variant is above one of the baseline, over all pairs of seeds, ties as half. num_ahead: pairs of one seed in which
    the variant is above. rho: the correlation of the arms over paired seeds.
    """

    hedges_g: float
    probability: float
    num_ahead: int | None
    rho: float


def measure_effects(baseline: Numbers, variant: Numbers, paired: bool) -> Effects:
    """Measure every size of a difference from one score a seed."""
    moments = [(float(arm.mean()), sd_of(arm) ** 2, len(arm)) for arm in (baseline, variant)]
    num_ahead, rho = (int((variant > baseline).sum()), correlation(baseline, variant)) if paired else (None, math.nan)
    return Effects(hedges_g(*moments), probability_above(baseline, variant), num_ahead, rho)


def hedges_g(baseline: tuple[float, float, int], variant: tuple[float, float, int]) -> float:
    """Return (mean − mean)/pooled SD · J, from mean, variance and number of each arm (Hedges 1981).

    J = Γ(df/2) / (√(df/2)·Γ((df − 1)/2)) with df = n + n − 2. Paired arms take the same pooled SD, so that g means
    the same either way.
    """
    (mean_b, var_b, n_b), (mean_v, var_v, n_v) = baseline, variant
    df = n_b + n_v - 2
    if min(n_b, n_v) < 2:
        return math.nan
    pooled = ((n_b - 1) * var_b + (n_v - 1) * var_v) / df
    if pooled <= 0:
        return math.nan
    correction = math.exp(gammaln(df / 2) - gammaln((df - 1) / 2)) / math.sqrt(df / 2)
    return (mean_v - mean_b) / math.sqrt(pooled) * correction


def probability_above(baseline: Numbers, variant: Numbers) -> float:
    """Return the share of pairs of seeds in which the variant is above, ties as half (Mann and Whitney's U/nm)."""
    above = variant[:, None] - baseline[None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def correlation(baseline: Numbers, variant: Numbers) -> float:
    """Return Pearson's ρ of the arms over seeds; NaN where an arm does not vary, or there are fewer than three."""
    first, second = baseline - baseline.mean(), variant - variant.mean()
    length = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    if len(baseline) < 3 or length == 0:
        return math.nan
    return max(-1.0, min(1.0, float(first @ second) / length))
