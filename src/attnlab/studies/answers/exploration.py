"""What a study shows beside the figure that decides: every other figure, explored and never a verdict.

All other figures of all arms in one phase and size are one family (Benjamini and Hochberg 1995), and intervals are at
the level that the family leaves them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, adjust, compare
from attnlab.statistics.account import plain

from .analysis import Answer
from .evidence import Evidence, Table
from .study_folder import Record

FEWEST = 2
"""Seeds that a figure must have in both arms."""


@dataclass(frozen=True)
class Exploration:
    """One figure of one arm against the baseline's."""

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
    """Why it could not be compared."""
    scale: str = "linear"
    """Of differences: units of the figure, or percent for "log"."""

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        found: dict[str, Any] = plain(vars(self))
        return found


def explore(record: Record) -> list[Exploration]:
    """Compare all figures but those that decide; nothing while a run is left to wait for."""
    by_place: dict[tuple[str, str], list[Answer]] = {}
    for answer in record.answers:
        by_place.setdefault((answer.phase, answer.size), []).append(answer)
    return [one for place, answers in by_place.items() for one in explored(record, place, answers)]


def explored(record: Record, place: tuple[str, str], answers: list[Answer]) -> Iterator[Exploration]:
    """Compare the other figures of one phase and size; an arm that is not comparable is left to its verdict."""
    evidence, baseline = record.evidence(*place), record.design.baseline
    found: dict[tuple[str, str], Comparison] = {}
    for answer in answers:
        if answer.comparison is None or answer.comparison.question.obstacle:
            continue
        for figure in other_figures(evidence, answer.figure):
            measured = evidence.measure((baseline, answer.arm), figure)
            tables = measured.tables
            both = [seed for seed, row in tables[baseline].items() if row is not None and has(tables[answer.arm], seed)]
            if len(both) < FEWEST:
                continue
            try:
                found[answer.arm, figure] = compare(
                    tables[baseline], tables[answer.arm], clusters=measured.clusters, scale=measured.scale
                )
            except StatisticsError as error:
                nothing = (math.nan,) * 2
                yield Exploration(*place, answer.arm, figure, math.nan, nothing, *nothing, math.nan, 0, str(error))
    family = adjust({f"{arm}\0{figure}": one.p for (arm, figure), one in found.items()}, "exploratory")
    for ((arm, figure), one), own in zip(found.items(), family.values(), strict=True):
        yield Exploration(
            *place, arm, figure, one.difference, one.interval_at(own.level), one.p, own.adjusted, own.level,
            one.known.baseline.n, scale=one.question.scale,
        )  # fmt: skip


def has(table: Table, seed: int) -> bool:
    """Tell whether a seed has a score."""
    return table.get(seed) is not None


def other_figures(evidence: Evidence, deciding: str) -> list[str]:
    """List the figures of a phase's last evaluations besides the one that decides."""
    names: dict[str, None] = {}
    for seeds in evidence.runs.values():
        for run in seeds.values():
            row = evidence.results.get(run.id)
            last = row.result.get("last") if row is not None else None
            names.update(dict.fromkeys(last["figures"] if last else ()))
    return [name for name in names if name != deciding]
