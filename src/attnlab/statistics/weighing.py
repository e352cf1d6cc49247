"""The interval and the p that decide: the estimate's, or those of the e-process if every seed may be a look."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.errors import StatisticsError

from .eprocess import e_process
from .estimate import Estimate
from .question import Question
from .scores import Arm


@dataclass(frozen=True)
class Weight:
    """An interval at a level, a p that is below the level just where the interval leaves out 0, and the method."""

    level: float
    interval: tuple[float, float]
    p: float
    method: str


def weigh(found: Estimate, question: Question, arms: tuple[Arm, Arm] | None, level: float) -> Weight:
    """Return what decides at a level, on the scale of the analysis."""
    if question.looks != "open":
        return Weight(level, found.interval(level), found.p, found.method)
    if arms is None or arms[0].num_seeds != arms[1].num_seeds:
        raise StatisticsError(
            "an open-ended comparison takes seeds in the order in which they came, as many of each arm; give a score "
            "for each seed, or declare looks such as (5, 10, 15, 20)"
        )
    process = e_process(arms[1].per_seed - arms[0].per_seed, level)
    return Weight(level, process.interval, process.p, process.method)
