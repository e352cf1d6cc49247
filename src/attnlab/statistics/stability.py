"""Whether one arm's seeds vary more, or fail more often: said apart from the verdict, and only from 8 seeds on.

Unpaired: Brown and Forsythe (1974), deviations from the medians. Paired: the same deviations, with the arms exchanged
within seeds in all ways (sign flips of their differences). Runs that failed or diverged: Fisher's exact test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from .exact import sign_flip
from .failures import Failures, count_failures
from .scores import ArmScores, Numbers

LESS, MORE, UNKNOWN = "LESS STABLE", "MORE STABLE", "STABILITY UNKNOWN"
FEWEST = 8
"""Seeds an arm from which a test of spread is made; with fewer none can tell."""


@dataclass(frozen=True)
class Stability:
    """One of three words about the variant, why, and the tests behind it; NaN where one was not made."""

    words: str
    reason: str
    spread_p: float = math.nan
    spread_method: str = ""
    failed: tuple[int, int] = (0, 0)
    runs: tuple[int, int] = (0, 0)
    failed_p: float = math.nan


def judge_stability(
    baseline: ArmScores, variant: ArmScores, paired: bool, failures: Failures | None = None, alpha: float = 0.05
) -> Stability:
    """Say whether the variant is less or more stable than the baseline, or that the seeds do not show it."""
    known = failures or count_failures(baseline, variant, paired)
    failed, runs, failed_p = known.failed, known.runs, known.fisher_p
    spread_p, method = compare_spread(baseline.per_seed, variant.per_seed, paired)
    num_tests = (not math.isnan(failed_p)) + (not math.isnan(spread_p))
    level = alpha / max(num_tests, 1)
    words, reason = UNKNOWN, _unknown(min(baseline.num_seeds, variant.num_seeds), spread_p)
    if spread_p < level:
        is_less = _deviations(variant.per_seed).mean() > _deviations(baseline.per_seed).mean()
        words = LESS if is_less else MORE
        reason = f"the variant's seeds vary {'more' if is_less else 'less'} ({method}, p = {spread_p:.2g})"
    # A run without any score is worse than one with an odd score, so that failures have the last word.
    if failed_p < level:
        is_less = failed[1] / runs[1] > failed[0] / runs[0]
        words = LESS if is_less else MORE
        reason = f"{known.text} (Fisher's exact test, p = {failed_p:.2g})"
    return Stability(words, reason, spread_p, method, failed, runs, failed_p)


def compare_spread(baseline: Numbers, variant: Numbers, paired: bool) -> tuple[float, str]:
    """Return the p of equal spread and the test's name; NaN with fewer than 8 seeds or without any spread."""
    if min(len(baseline), len(variant)) < FEWEST:
        return math.nan, ""
    deviations = _deviations(baseline), _deviations(variant)
    if not max(deviations[0].max(), deviations[1].max()) > 0:
        return math.nan, ""
    if paired:
        return sign_flip(deviations[1] - deviations[0]).p, "permutation of deviations from the median"
    # Deviations that are all the same make a ratio of 0 to 0, which is no evidence.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(scipy.stats.levene(baseline, variant, center="median").pvalue)
    return found, "Brown–Forsythe"


def _deviations(values: Numbers) -> Numbers:
    return np.abs(values - np.median(values))


def _unknown(n: int, spread_p: float) -> str:
    if n < FEWEST:
        return f"a test of spread needs {FEWEST} seeds an arm, and there are {n}"
    if math.isnan(spread_p):
        return "the seeds take too few values to test their spread"
    return f"{n} seeds do not show that one arm varies more (p = {spread_p:.2g})"
