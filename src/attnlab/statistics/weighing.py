"""The interval and the p that decide: t's, guarded against skewness, unless another test overrules it.

If every seed may be a look, the e-process decides. Otherwise t does; where it finds a difference in paired seeds and
the exact sign-flip test does not, the exact test decides and the interval reaches as far as its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from attnlab.errors import StatisticsError

from .eprocess import e_process
from .estimate import Estimate
from .exact import Exact, sign_flip, sign_flip_interval
from .known import Known
from .question import ALPHA, Question
from .scores import ArmScores, Numbers
from .skewness import FEWEST_AT_ANY_TIME, FEWEST_FOR_EXACT, Skew, few_seeds_factor

Interval = tuple[float, float]


@dataclass(frozen=True)
class Weight:
    """An interval at a level, a p that is at most the level just if the interval leaves out 0, and the method.

    exact: the exact test, if it overruled t.
    """

    level: float
    interval: Interval
    p: float
    method: str
    skew: Skew
    exact: Exact | None = None


def weigh(found: Estimate, question: Question, known: Known, level: float) -> Weight:
    """Return what decides at a level, on the scale of the analysis."""
    arms = known.arms
    if question.looks == "open":
        factor = few_seeds_factor(known.num_seeds, known.paired, FEWEST_AT_ANY_TIME)
        return _weigh_at_any_time(_differences_in_order(arms), known.skew.widen(factor), level)
    skew = known.skew.widen(few_seeds_factor(known.num_seeds, known.paired))
    interval, p = _guarded(found, skew, level)
    guarded = Weight(level, interval, p, found.method, skew)
    # The p must not depend on the level, or a family could not adjust it: the exact test is asked at any level.
    if arms is None or not known.paired or arms[0].num_seeds < FEWEST_FOR_EXACT or not p <= max(ALPHA, level):
        return guarded
    differences = arms[1].per_seed - arms[0].per_seed
    exact = sign_flip(differences)
    # At its smallest p the exact test has no objection: the data are the most extreme arrangement there is.
    if exact.p <= max(p, exact.smallest):
        return guarded
    if level < exact.p:
        interval = _with_exact(interval, differences, level)
    return Weight(level, interval, exact.p, f"{found.method}, overruled by {exact.method}", skew, exact)


def _weigh_at_any_time(differences: Numbers, skew: Skew, level: float) -> Weight:
    """Take the e-process, guarded as t is: its evidence grows with t, so that the same factors move its ends."""
    mean = float(differences.mean())
    low, high = e_process(differences, level).interval
    factor = skew.high if mean < 0 else skew.low
    process = e_process(differences - mean + mean / factor, level)
    return Weight(
        level, (mean - (mean - low) * skew.low, mean + (high - mean) * skew.high), process.p, process.method, skew
    )


def _guarded(found: Estimate, skew: Skew, level: float) -> tuple[Interval, float]:
    reach = -float(stdtrit(found.df, level / 2)) * found.se
    factor = skew.high if found.difference < 0 else skew.low
    p = 2 * float(stdtr(found.df, -abs(found.t) / factor))
    return (found.difference - reach * skew.low, found.difference + reach * skew.high), p


def _with_exact(interval: Interval, differences: Numbers, level: float) -> Interval:
    (low, high), (exact_low, exact_high) = interval, sign_flip_interval(differences, level)
    # 0 is inside by the exact p; min and max keep it there against rounding.
    return (min(low, exact_low, 0.0), high) if low > 0 else (low, max(high, exact_high, 0.0)) if high < 0 else interval


def _differences_in_order(arms: tuple[ArmScores, ArmScores] | None) -> Numbers:
    if arms is None or arms[0].num_seeds != arms[1].num_seeds:
        raise StatisticsError(
            "an open-ended comparison takes seeds in the order in which they came, as many of each arm; give a score "
            "for each seed, or declare looks such as (5, 10, 15, 20)"
        )
    differences: Numbers = arms[1].per_seed - arms[0].per_seed
    return differences
