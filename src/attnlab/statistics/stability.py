"""Whether one arm's seeds vary more or fail more often: reported beside the verdict, tested from 8 seeds on.

Unpaired: Brown and Forsythe (1974), deviations from the medians. Paired: sign flips of the differences of the same
deviations. Failed or diverged runs: Fisher's exact test.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from .exact import sign_flip
from .failures import Failures, count_failures
from .scores import ArmScores, Numbers

LESS, MORE, UNKNOWN = "LESS STABLE", "MORE STABLE", "STABILITY UNKNOWN"
MIN_SEEDS_FOR_SPREAD = 8
"""Seeds per arm from which spread is tested."""


@dataclass(frozen=True)
class Stability:
    """The word, the reason, and the test of spread, NaN if it was not made."""

    words: str
    reason: str
    spread_p: float = math.nan
    spread_method: str = ""


def judge_stability(
    baseline: ArmScores, variant: ArmScores, paired: bool, failures: Failures | None = None, alpha: float = 0.05
) -> Stability:
    """Test whether the variant is less or more stable than the baseline."""
    failures = failures or count_failures(baseline, variant, paired)
    spread_p, method = compare_spread(baseline.per_seed, variant.per_seed, paired)
    level = alpha / max((not math.isnan(failures.fisher_p)) + (not math.isnan(spread_p)), 1)
    n, is_less = min(baseline.num_seeds, variant.num_seeds), None
    # A run without a score is worse than one with an unusual score, so failures come first.
    if failures.fisher_p < level:
        is_less = failures.failed[1] / failures.runs[1] > failures.failed[0] / failures.runs[0]
        reason = f"{failures.text} (Fisher's exact test, p = {failures.fisher_p:.2g})"
    elif spread_p < level:
        is_less = _deviations(variant.per_seed).mean() > _deviations(baseline.per_seed).mean()
        reason = f"the variant's seeds vary {'more' if is_less else 'less'} ({method}, p = {spread_p:.2g})"
    elif n < MIN_SEEDS_FOR_SPREAD:
        reason = f"a test of spread needs {MIN_SEEDS_FOR_SPREAD} seeds per arm; there are {n}"
    elif math.isnan(spread_p):
        reason = "the seeds have too few distinct values to test their spread"
    else:
        reason = f"{n} seeds do not show that one arm varies more (p = {spread_p:.2g})"
    return Stability(UNKNOWN if is_less is None else LESS if is_less else MORE, reason, spread_p, method)


def compare_spread(baseline: Numbers, variant: Numbers, paired: bool) -> tuple[float, str]:
    """Return the p-value of equal spread and the test's name; NaN with fewer than 8 seeds or without any spread."""
    deviations = _deviations(baseline), _deviations(variant)
    if min(len(baseline), len(variant)) < MIN_SEEDS_FOR_SPREAD or not max(deviations[0].max(), deviations[1].max()) > 0:
        return math.nan, ""
    if paired:
        return sign_flip(deviations[1] - deviations[0]).p, "permutation of deviations from the median"
    # If all deviations are equal, the statistic is 0/0 and the p-value NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        p = float(scipy.stats.levene(baseline, variant, center="median").pvalue)
    return p, "Brown–Forsythe"


def _deviations(values: Numbers) -> Numbers:
    return np.abs(values - np.median(values))
