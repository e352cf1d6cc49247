"""One answer over several tasks: the mean over tasks of difference/smallest, each seed by itself, tested over seeds.

A difference counts in units of its task's `smallest`, with the sign that makes better positive. The variance over seeds
is that of the seeds' means, so tasks of one seed may be correlated; that over examples is added for each task.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .arms import compare
from .comparison import Comparison, conclude
from .estimate import Noise, satterthwaite
from .scores import ArmScores
from .verdict import BELOW, BETTER, FINISHED, WORSE

OVERALL = " OVERALL"
MIXED = "MIXED ({} better, {} worse)"


@dataclass(frozen=True)
class LeftOut:
    """The answer without one task."""

    task: str
    comparison: Comparison


def compare_overall(tasks: Mapping[str, Comparison]) -> Comparison:
    """Compare two arms over tasks; a difference of 1 is `smallest` in the mean of the tasks."""
    baseline, variant = (_average(tasks, place) for place in (0, 1))
    alone = compare(baseline, variant, paired=True, smallest=1.0)
    fixed = [one.estimate.noise.fixed / (len(tasks) * one.question.threshold) ** 2 for one in tasks.values()]
    if not sum(fixed) > 0 or not alone.estimate.se > 0:
        return alone
    parts = [alone.estimate.se**2, *fixed]
    df = satterthwaite(parts, [alone.estimate.df, *(one.estimate.df for one in tasks.values())])
    noise = Noise(alone.estimate.noise.per_seed, df, fixed=sum(fixed))
    method = "paired t over tasks, with examples"
    estimate = replace(alone.estimate, se=math.sqrt(sum(parts)), df=df, noise=noise, method=method)
    return conclude(estimate, alone.question, alone.data)


def leave_one_out(tasks: Mapping[str, Comparison], level: float, looks: Any = None) -> list[LeftOut]:
    """Return the answer without each of the tasks, at the level of the whole; none for a single task."""
    if len(tasks) < 2:
        return []
    left = []
    for task in tasks:
        without = compare_overall({name: one for name, one in tasks.items() if name != task})
        question = replace(without.question, alpha=level, looks=looks)
        left.append(LeftOut(task, conclude(without.estimate, question, without.data)))
    return left


def decide_overall(comparison: Comparison, signs: Sequence[int]) -> tuple[str, str]:
    """Return the words and the reason. signs: 1 for each task with a verdict of its own of BETTER, −1 of WORSE."""
    num_better, num_worse = (sum(sign == side for sign in signs) for side in (1, -1))
    words, outcome = comparison.verdict, comparison.decision.outcome
    is_opposed = (num_better and num_worse) or (outcome == BETTER and num_worse) or (outcome == WORSE and num_better)
    if comparison.decision.depends_on_p and is_opposed:
        opposed = "each other" if num_better and num_worse else "the mean of all"
        return MIXED.format(num_better, num_worse), f"verdicts of single tasks are opposed to {opposed}"
    if outcome not in (BETTER, WORSE):
        return words, comparison.decision.reason
    qualifiers = [part for part in (FINISHED, BELOW) if part in words]
    return "".join([outcome, OVERALL, *qualifiers]), comparison.decision.reason


def _average(tasks: Mapping[str, Comparison], place: int) -> dict[str, float | None]:
    """Return the mean over tasks of one arm's scores by seed, in units of `smallest`; None if a task has no score."""
    by_task = [_standardize(one, place) for one in tasks.values()]
    seeds = dict.fromkeys(seed for scores in by_task for seed in scores)
    averages: dict[str, float | None] = {}
    for seed in seeds:
        values = [scores.get(seed) for scores in by_task]
        known = [value for value in values if value is not None]
        averages[seed] = sum(known) / len(known) if len(known) == len(values) else None
    return averages


def _standardize(comparison: Comparison, place: int) -> dict[str, float | None]:
    assert comparison.data.scores is not None, "a study has the score of each seed"
    arm: ArmScores = comparison.data.scores[place]
    question = comparison.question
    unit = question.threshold if question.higher_is_better else -question.threshold
    return {**dict.fromkeys(arm.failed), **{seed: score / unit for seed, score in arm.score_by_seed.items()}}
