"""Exploratory comparisons: every figure of a study besides the one that decides, without verdicts.

All other figures of all arms in one phase and size are one family (Benjamini and Hochberg 1995), and intervals are at
the level of the family.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, adjust, compare
from attnlab.statistics.formatting import plain

from ..integrity.tables.metrics import find_limits
from .analysis import Answer
from .study_folder import Record

MIN_SHARED_SEEDS = 2
"""Seeds that a figure must have in both arms."""


@dataclass(frozen=True)
class Exploration:
    """One figure of one arm compared with the baseline's.

    obstacle: why it could not be compared. scale: whether differences are in units of the figure or, for "log", in
    percent.
    """

    phase: str
    size: str
    arm: str
    figure: str
    difference: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    level: float
    num_seeds: int
    obstacle: str = ""
    scale: str = "linear"

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return dict(plain(vars(self)))


def explore(record: Record) -> list[Exploration]:
    """Compare all figures but those that decide; none before every run has ended."""
    by_place: dict[tuple[str, str], list[Answer]] = {}
    for answer in record.answers:
        by_place.setdefault((answer.phase, answer.size), []).append(answer)
    return [one for place, answers in by_place.items() for one in _explore_place(record, place, answers)]


def _explore_place(record: Record, place: tuple[str, str], answers: list[Answer]) -> Iterator[Exploration]:
    table, baseline = record.table(*place), record.design.baseline
    names = dict.fromkeys(name for last in table.last_evaluations for name in last["figures"])
    comparisons: dict[tuple[str, str], Comparison] = {}
    for answer in answers:
        if answer.comparison is None or answer.comparison.question.obstacle:
            continue
        for metric in names:
            seeds = table.shared_seeds(baseline, answer.arm, metric=metric)
            if metric == answer.figure or len(seeds) < MIN_SHARED_SEEDS:
                continue
            measured = table.measure((baseline, answer.arm), metric)
            try:
                comparisons[answer.arm, metric] = compare(
                    measured.tables[baseline], measured.tables[answer.arm], not record.design.is_aa(answer.arm),
                    clusters=measured.clusters, scale=measured.scale, limits=find_limits(metric, table.ceiling),
                )  # fmt: skip
            except StatisticsError as error:
                unknown = (math.nan,) * 2
                yield Exploration(*place, answer.arm, metric, math.nan, unknown, *unknown, math.nan, 0, str(error))
    family = adjust({key: one.p for key, one in comparisons.items()}, "exploratory")
    for (arm, metric), one in comparisons.items():
        adjusted = family[arm, metric]
        yield Exploration(
            *place, arm, metric, one.difference, one.interval_at(adjusted.level), one.p, adjusted.adjusted,
            adjusted.level, one.data.baseline.n, scale=one.question.scale,
        )  # fmt: skip
