"""Runs without a score: whether one arm fails more often, and what the arms show if a failure is the worst result.

Runs that finished are not a fair sample of an arm whose worst runs diverge. Fisher's exact test tells whether the arms
fail at different rates. If a failed run takes the worst rank, sign flips of signed ranks (Wilcoxon 1945) or
permutations of ranks (Mann and Whitney 1947) compare the arms with no run left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from .exact import Exact, permutation, sign_flip
from .scores import ArmScores, Numbers


@dataclass(frozen=True)
class Failures:
    """Failed runs and runs of baseline and variant, with two tests; NaN where no run failed.

    fisher_p: of equal rates of failure. worst_p: of equal arms if a failed run is the worst result; `worst_sign` is 1
    if the variant is then above the baseline, −1 if below.
    """

    failed: tuple[int, int] = (0, 0)
    runs: tuple[int, int] = (0, 0)
    fisher_p: float = math.nan
    worst_p: float = math.nan
    worst_sign: int = 0

    @property
    def is_uneven(self) -> bool:
        """Whether one arm failed more often than the other, by however little."""
        return self.failed[0] * self.runs[1] != self.failed[1] * self.runs[0]

    @property
    def text(self) -> str:
        """The counts, in words that fit NOT COMPARABLE (…)."""
        (baseline, variant), (num_baseline, num_variant) = self.failed, self.runs
        return f"{baseline} of {num_baseline} runs of the baseline and {variant} of {num_variant} of the variant failed"


def count_failures(baseline: ArmScores, variant: ArmScores, paired: bool, higher_is_better: bool = True) -> Failures:
    """Count failed runs and, if there are any, make both tests."""
    failed = len(baseline.failed), len(variant.failed)
    runs = baseline.num_runs, variant.num_runs
    if not any(failed):
        return Failures(failed, runs)
    worst, sign = compare_with_worst(baseline, variant, paired, higher_is_better)
    return Failures(failed, runs, fisher(failed, runs), worst.p, sign)


def fisher(failed: tuple[int, int], runs: tuple[int, int]) -> float:
    """Return the two-sided p of as many failures in both arms."""
    table = np.array([[failed[0], runs[0] - failed[0]], [failed[1], runs[1] - failed[1]]])
    return float(scipy.stats.fisher_exact(table).pvalue)


def compare_with_worst(
    baseline: ArmScores, variant: ArmScores, paired: bool, higher_is_better: bool
) -> tuple[Exact, int]:
    """Test the arms by ranks with every failed run as the worst result; also say which side the variant is on."""
    worst = -math.inf if higher_is_better else math.inf
    ours, theirs = _all_scores(baseline, worst), _all_scores(variant, worst)
    if paired:
        signed = _signed_ranks(np.array([_difference(theirs[seed], ours[seed]) for seed in ours]))
        return sign_flip(signed), int(np.sign(signed.sum()))
    ranks = scipy.stats.rankdata([*ours.values(), *theirs.values()])
    first, second = ranks[: len(ours)], ranks[len(ours) :]
    return permutation(first, second), int(np.sign(second.mean() - first.mean()))


def _all_scores(arm: ArmScores, worst: float) -> dict[str, float]:
    scores = dict([*zip(arm.seeds, arm.per_seed.tolist(), strict=True), *arm.alone])
    return scores | dict.fromkeys(arm.failed, worst)


def _difference(variant: float, baseline: float) -> float:
    return 0.0 if variant == baseline else variant - baseline


def _signed_ranks(differences: Numbers) -> Numbers:
    # A pair without a difference says nothing and keeps rank 0, as in Wilcoxon's test.
    sizes, ranks = np.abs(differences), np.zeros(len(differences))
    ranks[sizes > 0] = scipy.stats.rankdata(sizes[sizes > 0])
    signed: Numbers = np.sign(differences) * ranks
    return signed
