"""Effect sizes: Hedges' g, and how often a seed of the variant beats one of the baseline."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .scores import Numbers, sd_of


@dataclass(frozen=True)
class Effects:
    """Effect sizes without a unit; unknown ones are NaN.

    hedges_g: the difference in standard deviations, corrected for small n. probability: how often a seed of the variant
    is above one of the baseline, over all pairs of seeds, ties as half. num_ahead: paired seeds in which the variant is
    better, None without pairs. rho: the correlation of the arms over paired seeds.
    """

    hedges_g: float
    probability: float
    num_ahead: int | None
    rho: float


def measure_effects(baseline: Numbers, variant: Numbers, paired: bool, higher_is_better: bool = True) -> Effects:
    """Measure all effect sizes from one score per seed."""
    moments = [(float(arm.mean()), sd_of(arm) ** 2, len(arm)) for arm in (baseline, variant)]
    g, probability = hedges_g(*moments), probability_above(baseline, variant)
    if not paired:
        return Effects(g, probability, None, math.nan)
    is_ahead = variant > baseline if higher_is_better else variant < baseline
    return Effects(g, probability, int(is_ahead.sum()), correlation(baseline, variant))


def hedges_g(baseline: tuple[float, float, int], variant: tuple[float, float, int]) -> float:
    """Return (mean − mean)/pooled SD · J, from mean, variance and number of each arm (Hedges 1981).

    J = Γ(df/2) / (√(df/2)·Γ((df − 1)/2)) with df = n + n − 2. Paired arms use the same pooled SD, so that g has the
    same meaning.
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
    """Return Pearson's ρ of the arms over seeds; NaN if an arm does not vary or has fewer than three seeds."""
    first, second = baseline - baseline.mean(), variant - variant.mean()
    length = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    if len(baseline) < 3 or length == 0:
        return math.nan
    return max(-1.0, min(1.0, float(first @ second) / length))
