"""When the arms of a study reach the target of a phase, and whether their last figures do."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.statistics import Comparison, conclude_family
from attnlab.statistics.formatting import plain, show, show_p, signed
from attnlab.statistics.question import ALPHA
from attnlab.statistics.target import (
    compare_with_target,
    exchange_steps,
    find_crossing,
    median_of_runs,
    name_outcome,
    summarize_exchange,
)  # fmt: skip
from attnlab.tasks.scores import LOG_FIGURES, LOWER_IS_BETTER
from attnlab.training.plain import decode_nonfinite

from ..file.design import Design, Phase
from ..plan.matching import Matching
from ..plan.planning import PlannedRun
from .analysis import Answer
from .run_table import RunTable


@dataclass(frozen=True)
class TargetAnswer:
    """One arm and the target of a phase.

    num_reached: runs that reach it during training; the others never do as far as they were trained. steps, operations,
    seconds: medians over all runs until they first reach it; None if half of the runs or more do not. exchange: by how
    many percent the arm's steps to the same figure differ from the baseline's, with its 95 % interval; None for the
    baseline.
    """

    phase: str
    size: str
    arm: str
    figure: str
    target: float
    verdict: str
    p: float
    num_runs: int
    num_reached: int
    steps: float | None
    operations: float | None
    seconds: float | None
    exchange: tuple[float, tuple[float, float]] | None = None

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return dict(plain(vars(self)))

    @property
    def cells(self) -> tuple[str, ...]:
        """Its figures as text, under COLUMNS."""
        spent = "–" if self.operations is None else f"{self.operations:.3g}"
        seconds = "–" if self.seconds is None else f"{self.seconds:.3g} s"
        return (
            self.phase, self.size, self.arm, self.figure, self.verdict, show_p(self.p),
            f"{self.num_reached} of {self.num_runs}", "–" if self.steps is None else f"{self.steps:,.0f}", spent,
            seconds, self._describe_exchange(),
        )  # fmt: skip

    def _describe_exchange(self) -> str:
        if self.exchange is None:
            return "–"
        change, (low, high) = self.exchange
        interval = f" [{signed(low)}, {signed(high)}]" if math.isfinite(low) and math.isfinite(high) else ""
        return f"{show(abs(change))} % {'fewer' if change < 0 else 'more'}{interval}"


COLUMNS = (
    "phase", "size", "arm", "figure", "verdict", "p", "runs that reach it", "steps", "operations", "seconds",
    "steps to the same figure",
)  # fmt: skip

NOTE = (
    "steps, operations and seconds are medians over all runs until they first reach the target, between evaluations; "
    "runs that never reach it count as later than all others. Steps to the same figure are the arm's against the "
    "baseline's, at the last figure of the one that ends worse, read from curves under one schedule: a shorter "
    "training with a schedule of its own may need fewer"
)


def judge_targets(
    design: Design, tables: Mapping[tuple[str, str], RunTable], matching: Matching, answers: Sequence[Answer],
    obstacles: Mapping[str, str],
) -> list[TargetAnswer]:  # fmt: skip
    """Judge every arm in every phase with a target. answers: the study's verdicts, whose looks are the same."""
    looks = next((one.comparison.question.looks for one in answers if one.comparison is not None), None)
    compared: dict[tuple[str, str, str], Comparison] = {}
    judges: dict[tuple[str, str], _Judge] = {}
    for phase in (phase for phase in design.phases if phase.target is not None):
        for size in design.sizes:
            judge = judges[phase.name, size] = _Judge(phase, size, design.baseline, tables[phase.name, size], matching)
            arms = [arm for arm in design.arms if not design.is_aa(arm) and not obstacles.get(arm)]
            compared |= {(phase.name, size, arm): one for arm in arms if (one := judge.compare(arm, looks)) is not None}
    if looks is None:
        compared = conclude_family(compared)
    else:
        share = ALPHA / max(1, len(compared))
        compared = {key: judges[key[:2]].compare(key[2], looks, share) or one for key, one in compared.items()}
    return [judges[place[:2]].answer(place[2], one) for place, one in compared.items()]


@dataclass(frozen=True)
class _Judge:
    """One phase with a target, in one size."""

    phase: Phase
    size: str
    baseline: str
    table: RunTable
    matching: Matching

    @property
    def target(self) -> float:
        return float(self.phase.target or 0.0)

    @property
    def metric(self) -> str:
        return self.table.metric or ""

    @property
    def higher_is_better(self) -> bool:
        return self.metric not in LOWER_IS_BETTER

    def compare(self, arm: str, looks: Any, alpha: float = ALPHA) -> Comparison | None:
        """Compare the last figures of an arm with the target; None if it has none."""
        values = self.table.values(arm, self.metric)
        is_log = self.metric in LOG_FIGURES
        if not any(value is not None for value in values.values()) or (is_log and self.target <= 0):
            return None
        return compare_with_target(
            values, self.target, higher_is_better=self.higher_is_better, scale="log" if is_log else "linear",
            looks=looks, alpha=alpha,
        )  # fmt: skip

    def answer(self, arm: str, comparison: Comparison) -> TargetAnswer:
        """Return what an arm reaches, and when."""
        runs = self.table.runs[arm]
        steps = {seed: self._find_step(run) for seed, run in runs.items()}
        reached = {seed: step for seed, step in steps.items() if step is not None}
        count = self.matching.counts.get((self.phase.name, self.size, arm))
        seconds = [
            None if seed not in reached else self._find_seconds(run, reached[seed]) for seed, run in runs.items()
        ]
        operations = (
            None
            if count is None
            else [None if step is None else count.operations_until(step) for step in steps.values()]
        )
        return TargetAnswer(
            self.phase.name, self.size, arm, self.metric, self.target, name_outcome(comparison, self.target),
            comparison.p, len(runs), len(reached), median_of_runs([*steps.values()]),
            None if operations is None else median_of_runs(operations), median_of_runs(seconds),
            None if arm == self.baseline else self._exchange(arm),
        )  # fmt: skip

    def _find_step(self, run: PlannedRun) -> float | None:
        return find_crossing(self._read_curve(run), self.target, higher_is_better=self.higher_is_better)

    def _read_curve(self, run: PlannedRun) -> list[tuple[float, float]]:
        lines = [decode_nonfinite(line) for line in self.table.ledger.lines(run.id, "evaluation")]
        return [(float(line["step"]), float(line[self.metric])) for line in lines if line.get(self.metric) is not None]

    def _find_seconds(self, run: PlannedRun, step: float) -> float:
        """Return the seconds of training until a step, between two lines of the log by its share of their updates."""
        lines = self.table.ledger.lines(run.id, "train")
        points = [(0.0, 0.0), *((float(line["step"]), float(line["seconds"])) for line in lines if "seconds" in line)]
        row = self.table.results.get(run.id)
        if row is not None and row.result.get("seconds"):
            points.append((float(row.result["step"]), float(row.result["seconds"])))
        steps, seconds = zip(*points, strict=True)
        return float(np.interp(step, steps, seconds))

    def _exchange(self, arm: str) -> tuple[float, tuple[float, float]] | None:
        logs = list(self._list_exchanges(arm))
        return summarize_exchange(logs) if logs else None

    def _list_exchanges(self, arm: str) -> Iterator[float]:
        for seed, run in self.table.runs[arm].items():
            curves = [
                self._read_curve(one) for one in (self.table.runs[self.baseline].get(seed), run) if one is not None
            ]
            log = exchange_steps(*curves, higher_is_better=self.higher_is_better) if len(curves) == 2 else None
            if log is not None:
                yield log
