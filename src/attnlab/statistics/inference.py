"""The interval and p-value that decide a comparison.

If every seed may be a look, the e-process decides. Otherwise t does, with its interval widened for skewness; if t finds
a difference in paired seeds and the exact sign-flip test does not, the exact test decides.
"""

from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from attnlab.errors import StatisticsError

from .arm_data import ArmData
from .eprocess import e_process
from .estimate import Estimate
from .exact import Exact, sign_flip, sign_flip_interval
from .question import ALPHA, Question
from .scores import Numbers
from .skewness import MIN_SEEDS_AT_ANY_TIME, MIN_SEEDS_FOR_EXACT, Skew, few_seeds_factor

Interval = tuple[float, float]


@dataclass(frozen=True)
class Inference:
    """An interval at a level, a p-value that is at most the level if and only if the interval excludes 0, and a method.

    exact: the exact test, if it overruled t.
    """

    level: float
    interval: Interval
    p: float
    method: str
    skew: Skew
    exact: Exact | None = None


def infer(estimate: Estimate, question: Question, data: ArmData, level: float) -> Inference:
    """Return the interval and p-value that decide at a level, on the analysis scale."""
    if question.looks == "open":
        factor = few_seeds_factor(data.num_seeds, data.paired, MIN_SEEDS_AT_ANY_TIME)
        return _infer_at_any_time(data, data.skew.widen(factor), level)
    by_t = infer_by_t(estimate, data.skew.widen(few_seeds_factor(data.num_seeds, data.paired)), level)
    p = by_t.p
    # The p-value must not depend on the level, or a family could not adjust it: the exact test is made at any level.
    if data.scores is None or not data.paired or data.num_seeds < MIN_SEEDS_FOR_EXACT or not p <= max(ALPHA, level):
        return by_t
    differences = data.scores[1].per_seed - data.scores[0].per_seed
    exact = sign_flip(differences)
    # At its smallest possible p the exact test cannot overrule t: the data are the most extreme arrangement.
    if exact.p <= max(p, exact.smallest):
        return by_t
    interval = by_t.interval
    if level < exact.p:
        interval = _extend_to_exact(interval, differences, level)
    return Inference(level, interval, exact.p, f"{estimate.method}, overruled by {exact.method}", by_t.skew, exact)


def infer_by_t(estimate: Estimate, skew: Skew, level: float) -> Inference:
    """Return the t interval at a level, each side widened by its factor, and the p-value that agrees with it."""
    reach = -float(stdtrit(estimate.df, level / 2)) * estimate.se
    interval = estimate.difference - reach * skew.low, estimate.difference + reach * skew.high
    factor = skew.high if estimate.difference < 0 else skew.low
    p = 2 * float(stdtr(estimate.df, -abs(estimate.t) / factor))
    method = f"{estimate.method}, widened" if max(skew.low, skew.high) > 1 else estimate.method
    return Inference(level, interval, p, method, skew)


def _infer_at_any_time(data: ArmData, skew: Skew, level: float) -> Inference:
    if data.scores is None or data.scores[0].num_seeds != data.scores[1].num_seeds:
        raise StatisticsError(
            "an open-ended comparison needs the score of each seed, in the order of the runs, and as many seeds in "
            "both arms; give them, or declare looks such as (5, 10, 15, 20)"
        )
    differences = data.scores[1].per_seed - data.scores[0].per_seed
    # The evidence of the e-process grows with t, so the factors that widen t's interval apply to it as well.
    mean = float(differences.mean())
    low, high = e_process(differences, level).interval
    process = e_process(differences - mean + mean / (skew.high if mean < 0 else skew.low), level)
    interval = mean - (mean - low) * skew.low, mean + (high - mean) * skew.high
    return Inference(level, interval, process.p, process.method, skew)


def _extend_to_exact(interval: Interval, differences: Numbers, level: float) -> Interval:
    (low, high), (exact_low, exact_high) = interval, sign_flip_interval(differences, level)
    # The exact p says that 0 is inside; min and max keep it there despite rounding.
    return (min(low, exact_low, 0.0), high) if low > 0 else (low, max(high, exact_high, 0.0)) if high < 0 else interval
