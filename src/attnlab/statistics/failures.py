"""Runs without a score: does one arm fail more often, and which arm is better if a failure is the worst result?

Runs that finished are not a fair sample of an arm whose worst runs diverge. Fisher's exact test compares the failure
rates. With failed runs at the worst rank, sign flips of signed ranks (Wilcoxon 1945) or permutations of ranks (Mann and
Whitney 1947) compare the arms without leaving out a run.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from .exact import Exact, permutation, sign_flip
from .scores import ArmScores


@dataclass(frozen=True)
class Failures:
    """Failed runs and all runs of baseline and variant, with two tests; NaN if no run failed.

    fisher_p: of equal failure rates. worst_p: of equal arms if a failed run is the worst result; `worst_sign` is then
    the sign of variant − baseline.
    """

    failed: tuple[int, int] = (0, 0)
    runs: tuple[int, int] = (0, 0)
    fisher_p: float = math.nan
    worst_p: float = math.nan
    worst_sign: int = 0

    @property
    def is_uneven(self) -> bool:
        """Whether the failure rates differ at all."""
        return self.failed[0] * self.runs[1] != self.failed[1] * self.runs[0]

    @property
    def text(self) -> str:
        """The counts as a sentence, also for NOT COMPARABLE (…)."""
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
    """Return the two-sided p-value of Fisher's exact test of equal failure rates."""
    table = np.array([[failed[0], runs[0] - failed[0]], [failed[1], runs[1] - failed[1]]])
    return float(scipy.stats.fisher_exact(table).pvalue)


def compare_with_worst(
    baseline: ArmScores, variant: ArmScores, paired: bool, higher_is_better: bool
) -> tuple[Exact, int]:
    """Compare the arms by ranks, with every failed run as the worst result; also return the sign of the difference."""
    worst = -math.inf if higher_is_better else math.inf
    first, second = (arm.score_by_seed | dict.fromkeys(arm.failed, worst) for arm in (baseline, variant))
    if paired:
        pairs = ((first[seed], second[seed]) for seed in first)
        differences = np.array([0.0 if low == high else high - low for low, high in pairs])
        # A difference of 0 keeps rank 0, as in Wilcoxon's test.
        sizes, ranks = np.abs(differences), np.zeros(len(differences))
        ranks[sizes > 0] = scipy.stats.rankdata(sizes[sizes > 0])
        signed_ranks = np.sign(differences) * ranks
        return sign_flip(signed_ranks), int(np.sign(signed_ranks.sum()))
    ranks = scipy.stats.rankdata([*first.values(), *second.values()])
    of_first, of_second = ranks[: len(first)], ranks[len(first) :]
    return permutation(of_first, of_second), int(np.sign(of_second.mean() - of_first.mean()))
