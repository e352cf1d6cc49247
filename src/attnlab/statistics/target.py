"""A target: when a learning curve reaches a figure, whether an arm's last figures do, and steps exchanged for loss.

The test is a comparison of an arm's seeds with a constant, one number per seed: it is about other seeds on the same
evaluation examples.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .arm_data import PERFECT
from .arms import compare
from .comparison import Comparison
from .estimate import paired_t
from .question import ALPHA, Looks, Scale
from .verdict import AT_CEILING, BETTER, DEGENERATE, FINISHED, TOO_FEW, WORSE

REACHES, DOES_NOT_REACH = "REACHES {}", "DOES NOT REACH {}"
TARGET_INCONCLUSIVE = "TARGET INCONCLUSIVE"
Curve = Sequence[tuple[float, float]]
"""Steps and figures of the evaluations of a run, by step."""


def find_crossing(curve: Curve, target: float, *, higher_is_better: bool) -> float | None:
    """Return the step at which a curve first reaches a target, interpolated between evaluations; None if it does not.

    A target that the first evaluation has reached counts as reached at that step.
    """
    sign = 1 if higher_is_better else -1
    before: tuple[float, float] | None = None
    for step, figure in curve:
        gap = sign * (figure - target)
        if not math.isfinite(gap):
            before = None
        elif gap < 0:
            before = step, gap
        elif before is None or gap == 0:
            return step
        else:
            return before[0] + (step - before[0]) * before[1] / (before[1] - gap)
    return None


def compare_with_target(
    values: Mapping[Any, float | None], target: float, *, higher_is_better: bool, scale: Scale = "linear",
    looks: Looks = None, alpha: float = ALPHA,
) -> Comparison:  # fmt: skip
    """Compare the last figures of an arm's seeds, None for a run without one, with a target."""

    def convert(value: float) -> float:
        return math.log(value) if scale == "log" else value

    scores = {seed: None if value is None else convert(value) for seed, value in values.items()}
    constant = dict.fromkeys(scores, convert(target))
    # Only the interval decides, so any `smallest` will do.
    return compare(constant, scores, scale=scale, higher_is_better=higher_is_better, looks=looks, alpha=alpha)


def name_outcome(comparison: Comparison, target: float) -> str:
    """Return the words on an arm: REACHES, DOES NOT REACH, or why that is not known."""
    outcome = BETTER if _is_perfect(comparison) else comparison.decision.outcome
    if outcome in (TOO_FEW, DEGENERATE):
        return outcome
    words = {BETTER: REACHES, WORSE: DOES_NOT_REACH}.get(outcome)
    if words is None:
        return TARGET_INCONCLUSIVE
    has_failed = comparison.data.failures.failed[1] > 0
    return words.format(f"{target:g}") + (FINISHED if has_failed and outcome == BETTER else "")


def _is_perfect(comparison: Comparison) -> bool:
    """Return whether all of enough seeds have the best possible score, so that a spread of 0 has a reason."""
    question, (target, arm) = comparison.question, comparison.data.moments
    is_best = question.higher_is_better and question.scale == "linear" and arm.mean in PERFECT
    return comparison.decision.outcome in (DEGENERATE, AT_CEILING) and is_best and arm.mean >= target.mean


def exchange_steps(baseline: Curve, arm: Curve, *, higher_is_better: bool) -> float | None:
    """Return the log of the steps that an arm needs for the baseline's last figure, per step of the baseline.

    If the arm never reaches that figure, the baseline's steps for the arm's last figure are used the other way round:
    one of the two exists, so that no seed is dropped. None without evaluations.
    """
    if not baseline or not arm:
        return None
    step = find_crossing(arm, baseline[-1][1], higher_is_better=higher_is_better)
    if step is not None:
        return math.log(step / baseline[-1][0])
    step = find_crossing(baseline, arm[-1][1], higher_is_better=higher_is_better)
    return None if step is None else -math.log(step / arm[-1][0])


def summarize_exchange(logs: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the mean change of the number of steps in percent and its 95 % interval, from the logs of all seeds."""
    estimate = paired_t(np.asarray(logs, dtype=float))
    low, high = estimate.interval() if len(logs) > 1 else (math.nan, math.nan)
    return _to_percent(estimate.difference), (_to_percent(low), _to_percent(high))


def _to_percent(log: float) -> float:
    return math.inf if log > math.log(1e100) else 100 * math.expm1(log)


def median_of_runs(values: Sequence[float | None]) -> float | None:
    """Return the median over all runs, of which those without a value never get there; None if the median does not."""
    ranked = sorted(math.inf if value is None else value for value in values)
    if not ranked:
        return None
    middle = (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
    return middle if math.isfinite(middle) else None
