"""Power of the rule that decides a verdict: how often it finds a true difference of normal scores.

A verdict widens the t interval for skewness and few pairs, and the exact test can overrule it (inference.py). Of normal
scores the mean is independent of all that, so seeded samples give only the difference that each of them would need,
and the chance to exceed it is computed. The power of the plain t test, whose integral is known, corrects what the
samples miss; library functions of the noncentral t fail for large effects.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from .estimate import Noise
from .looks import normal_density
from .scores import Numbers
from .skewness import GUARD, MIN_SEEDS_FOR_EXACT, TOLERATED, few_seeds_factor
from .verdict import MIN_SEEDS

NODES, WEIGHTS = (np.array(column) / 2 for column in np.polynomial.legendre.leggauss(200))
"""Gauss–Legendre quadrature from 0 to 1; nodes are relative to the middle."""
MAX_SAMPLED = 64
"""Seeds beyond which the rule has the power of t: normal scores are no longer skewed by chance."""
MAX_FLIPPED = 14
"""Pairs up to which the exact test is counted: beyond, it costs less than a hundredth of the studies."""
NUM_SAMPLES, NUM_FLIPPED_SAMPLES = 4000, 1000
MAX_LEVEL = 0.1
"""The exact test is counted as if at this level if the level is higher."""


class _Samples(NamedTuple):
    """Samples of n normal scores per arm; a difference of one seed has variance 1.

    variance: of a difference, as estimated. df: its degrees of freedom. skewness: of the mean, both signs of a sample.
    """

    variance: Numbers
    df: Numbers
    skewness: Numbers


def compute_power(noise: Noise, n: int, effect: float, alpha: float = 0.05, se: float | None = None) -> float:
    """Return how often n seeds per arm find a true difference: the verdict is BETTER or WORSE, at two-sided alpha.

    se: the standard error of the difference if it is not that of n seeds in each arm.
    """
    se = _find_se(noise, n) if se is None else se
    if n < MIN_SEEDS or not se > 0 or n > MAX_SAMPLED:
        return 0.0 if n < MIN_SEEDS else power_at(se, noise.growth * (n - 1), effect, alpha)
    shift, samples = abs(effect) / se, _draw_samples(n, noise.paired, noise.growth)
    t_limits = -float(stdtrit(noise.growth * (n - 1), alpha / 2)) * np.sqrt(samples.variance)
    correction = power_at(se, noise.growth * (n - 1), effect, alpha) - _find_share(shift, t_limits)
    return min(1.0, max(0.0, _find_share(shift, _find_limits(noise, n, alpha)) + correction))


def compute_exaggeration(noise: Noise, n: int, effect: float, alpha: float = 0.05, se: float | None = None) -> float:
    """Return the mean size of the differences that n seeds per arm find, relative to the true effect."""
    se = _find_se(noise, n) if se is None else se
    if math.isnan(se) or n < MIN_SEEDS:
        return math.nan
    if se <= 0:
        return 1.0
    shift, limits = abs(effect) / se, _find_limits(noise, n, alpha)
    # E[|x|; |x| > c] of a normal x with mean `shift` and SD 1.
    above = shift * ndtr(shift - limits) + normal_density(limits - shift)
    below = -shift * ndtr(-shift - limits) + normal_density(limits + shift)
    power = _find_share(shift, limits)
    return float(np.mean(above + below)) / (power * shift) if power > 0 else math.inf


def power_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return the power of the plain t test at two-sided alpha, given the standard error and its degrees of freedom."""
    if se <= 0:
        return 1.0
    if not df > 0 or math.isnan(se):
        return math.nan
    sample_sds = np.sqrt(chdtri(df, 0.5 - NODES) / df)
    shift, limits = abs(effect) / se, -float(stdtrit(df, alpha / 2)) * sample_sds
    return float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))


def _find_se(noise: Noise, n: int) -> float:
    return math.sqrt(noise.per_seed / n + noise.fixed)


def _find_share(shift: float, limits: Numbers) -> float:
    return float(np.mean(ndtr(shift - limits) + ndtr(-shift - limits)))


def _find_limits(noise: Noise, n: int, alpha: float) -> Numbers:
    """Return the smallest difference that the rule finds, in true standard errors, for each sample."""
    fixed_share = noise.fixed / (noise.per_seed / n + noise.fixed)
    return _limit_samples(min(n, MAX_SAMPLED), noise.paired, noise.growth, alpha, fixed_share)


@lru_cache(maxsize=256)
def _limit_samples(n: int, paired: bool, growth: float, alpha: float, fixed_share: float) -> Numbers:
    """Find the limits; fixed_share: of the variance over examples, which is taken as known and without skewness."""
    samples = _draw_samples(n, paired, growth)
    of_seeds = (1 - fixed_share) * samples.variance
    total = of_seeds + fixed_share
    df = samples.df * (total / of_seeds) ** 2 if fixed_share < 1 else math.inf
    skewness = samples.skewness * (of_seeds / total) ** 1.5
    factors = few_seeds_factor(n, paired) * (1 + GUARD * np.maximum(0.0, skewness - TOLERATED))
    limits: Numbers = -stdtrit(df, alpha / 2) * np.sqrt(total) * factors
    if not paired or not MIN_SEEDS_FOR_EXACT <= n <= MAX_FLIPPED:
        return limits
    means = _find_extreme_subset_means(n)
    # As in `sign_flip_interval`; the smallest possible p never overrules t.
    place = min(max(1, math.floor(alpha * 2**n / 2)), means.shape[-1])
    return np.maximum(limits, math.sqrt(n * (1 - fixed_share)) * means[..., place - 1])


@lru_cache(maxsize=64)
def _draw_samples(n: int, paired: bool, growth: float) -> _Samples:
    """Draw samples; growth: of Welch's degrees of freedom, which tells the shares of the two arms in the variance."""
    first = (1 + math.sqrt(max(0.0, 2 / growth - 1))) / 2
    shares = [1.0] if paired else [first, 1 - first]
    residuals = [math.sqrt(share) * _draw_residuals(n, arm) for arm, share in enumerate(shares)]
    parts = [np.sum(part**2, axis=1) / (n - 1) for part in residuals]
    variance: Numbers = sum(parts, np.zeros(len(parts[0])))
    df = (n - 1) * variance**2 / sum(part**2 for part in parts)
    spread = np.sqrt(variance / n * (n - 1) / n)
    # The arms' signs do not matter: both signs of a sample are used.
    skewness = sum(np.mean(part**3, axis=1) for part in residuals) / n**2 / spread**3
    return _Samples(variance, df, np.stack([skewness, -skewness]))


def _draw_residuals(n: int, arm: int = 0) -> Numbers:
    num = NUM_FLIPPED_SAMPLES if MIN_SEEDS_FOR_EXACT <= n <= MAX_FLIPPED else NUM_SAMPLES
    scores: Numbers = np.random.default_rng([n, arm]).standard_normal((num, n))
    residuals: Numbers = scores - scores.mean(axis=1, keepdims=True)
    return residuals


@lru_cache(maxsize=MAX_FLIPPED)
def _find_extreme_subset_means(n: int) -> Numbers:
    """Return the largest means of subsets of each sample, in order [sign, sample, place], for levels to MAX_LEVEL."""
    is_in = ((np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1).astype(np.float32)
    means = _draw_residuals(n).astype(np.float32) @ (is_in / is_in.sum(axis=1, keepdims=True)).T
    num = math.ceil(MAX_LEVEL * 2**n / 2)
    ends = [np.partition(-sign * means, num, axis=1)[:, :num] for sign in (1, -1)]
    return -np.sort(np.stack(ends), axis=-1).astype(np.float64)
