"""Estimates of variant − baseline with a standard error and degrees of freedom: paired t, Welch, crossed two-way.

Crossed: the mean of D[seed, example] has the variance (MS_seed + MS_example − MS_residual)/(n_s·n_e), so the interval
generalizes to other seeds and other examples (degrees of freedom by Satterthwaite 1946).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from .scores import ArmScores, Numbers, sd_of

NEGATIVE_VARIANCE = "the variance over examples was estimated below 0 and is taken as 0"


@dataclass(frozen=True)
class Noise:
    """How the variance of the difference depends on the number of seeds per arm: per_seed/n + fixed.

    df: the degrees of freedom of the estimate. growth: degrees of freedom that each further seed adds. paired: whether
    the arms share their seeds.
    """

    per_seed: float
    df: float
    growth: float = 1.0
    fixed: float = 0.0
    paired: bool = True


@dataclass(frozen=True)
class Estimate:
    """A difference, its standard error, and the degrees of freedom of its t interval; unknown is NaN."""

    difference: float
    se: float
    df: float
    method: str
    noise: Noise
    note: str = ""

    @property
    def t(self) -> float:
        """The t statistic: difference / se."""
        return self.difference / self.se if self.se > 0 else math.nan

    @property
    def p(self) -> float:
        """The two-sided p-value of no difference."""
        return float(2 * stdtr(self.df, -abs(self.t)))

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the 1 − alpha interval of the difference."""
        half = -float(stdtrit(self.df, alpha / 2)) * self.se
        return self.difference - half, self.difference + half


def estimate(baseline: ArmScores, variant: ArmScores, paired: bool) -> Estimate:
    """Estimate the difference: crossed if there are scores of examples, otherwise from one number per seed."""
    if baseline.values.ndim == 1:
        return paired_t(variant.values - baseline.values) if paired else welch(baseline.values, variant.values)
    if min(baseline.num_seeds, variant.num_seeds) < 2:
        return paired_t(variant.per_seed[:1] - baseline.per_seed[:1])
    if paired:
        return crossed(variant.values - baseline.values, variant.df_examples)
    return crossed_apart(baseline.values, variant.values, variant.df_examples)


def paired_t(differences: Numbers) -> Estimate:
    """Estimate a mean difference from one difference per seed: s/√n with n − 1 degrees of freedom."""
    n = len(differences)
    variance = float(np.var(differences, ddof=1)) if n > 1 else math.nan
    df = n - 1.0 if n > 1 else math.nan
    return Estimate(float(differences.mean()), math.sqrt(variance / n), df, "paired t", Noise(variance, df))


def welch(baseline: Numbers, variant: Numbers) -> Estimate:
    """Estimate the difference of two means with unequal variances (Welch 1947)."""
    return welch_from(*((float(arm.mean()), sd_of(arm), len(arm)) for arm in (baseline, variant)))


def welch_from(baseline: tuple[float, float, int], variant: tuple[float, float, int]) -> Estimate:
    """Estimate as `welch` does, from mean, SD and number of seeds of each arm."""
    (mean_b, sd_b, n_b), (mean_v, sd_v, n_v) = baseline, variant
    parts = [sd_b**2 / n_b, sd_v**2 / n_v]
    df = satterthwaite(parts, [n_b - 1, n_v - 1])
    # Degrees of freedom that each further seed of both arms adds if the arms have the same n.
    growth = satterthwaite([sd_b**2, sd_v**2], [1, 1])
    noise = Noise(sd_b**2 + sd_v**2, df, growth, paired=False)
    return Estimate(mean_v - mean_b, math.sqrt(sum(parts)), df, "Welch t", noise)


def crossed(differences: Numbers, df_examples: float | None = None) -> Estimate:
    """Estimate the mean of D[seed, example] for randomly drawn seeds and examples.

    df_examples: degrees of freedom of the examples, by default their number less one; clusters have fewer.
    """
    n_s, n_e = differences.shape
    ms_seed, ms_example, ms_residual = mean_squares(differences)
    total = ms_seed + ms_example - ms_residual
    per_seed = ms_seed / n_e
    noise = Noise(per_seed, n_s - 1.0, fixed=max(0.0, ms_example - ms_residual) / (n_s * n_e))
    mean, method = float(differences.mean()), "crossed two-way"
    if total <= 0:
        return Estimate(mean, math.sqrt(per_seed / n_s), n_s - 1.0, method, noise, NEGATIVE_VARIANCE)
    df_e = n_e - 1 if df_examples is None else df_examples
    df = satterthwaite([ms_seed, ms_example, -ms_residual], [n_s - 1, df_e, (n_s - 1) * df_e])
    return Estimate(mean, math.sqrt(total / (n_s * n_e)), df, method, noise)


def crossed_apart(baseline: Numbers, variant: Numbers, df_examples: float | None = None) -> Estimate:
    """Estimate as `crossed` does if the arms have the same examples but their seeds are not paired."""
    n_e = baseline.shape[1]
    by_example = variant.mean(axis=0) - baseline.mean(axis=0)
    df_e = n_e - 1.0 if df_examples is None else df_examples
    parts, dfs = [float(np.var(by_example, ddof=1)) / n_e], [df_e]
    for arm in (baseline, variant):
        n = len(arm)
        ms_seed, _, ms_residual = mean_squares(arm)
        parts += [ms_seed / (n * n_e), -ms_residual / (n * n_e)]
        dfs += [n - 1.0, (n - 1.0) * df_e]
    by_seed, method = welch(baseline.mean(axis=1), variant.mean(axis=1)), "crossed two-way, seeds apart"
    fixed = max(0.0, sum(parts) - (parts[1] + parts[3]))
    noise = Noise(by_seed.noise.per_seed, by_seed.df, by_seed.noise.growth, fixed, paired=False)
    if sum(parts) <= 0:
        return Estimate(by_seed.difference, by_seed.se, by_seed.df, method, noise, NEGATIVE_VARIANCE)
    return Estimate(by_seed.difference, math.sqrt(sum(parts)), satterthwaite(parts, dfs), method, noise)


def mean_squares(table: Numbers) -> tuple[float, float, float]:
    """Return MS_seed, MS_example and MS_residual of a table [seed, example]."""
    n_s, n_e = table.shape
    mean = table.mean()
    by_seed, by_example = table.mean(axis=1) - mean, table.mean(axis=0) - mean
    residual = table - mean - by_seed[:, None] - by_example[None, :]
    ms_seed = n_e * float(by_seed @ by_seed) / (n_s - 1)
    ms_example = n_s * float(by_example @ by_example) / (n_e - 1)
    return ms_seed, ms_example, float((residual**2).sum()) / ((n_s - 1) * (n_e - 1))


def satterthwaite(parts: Sequence[float], dfs: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of mean squares: (Σ part)² / Σ part²/df."""
    # Relative to the largest, since squares of variances can overflow a double.
    unit = max(abs(part) for part in parts)
    if not unit > 0:
        return math.nan
    shares = [part / unit for part in parts]
    return sum(shares) ** 2 / sum(share**2 / df for share, df in zip(shares, dfs, strict=True) if df > 0)
