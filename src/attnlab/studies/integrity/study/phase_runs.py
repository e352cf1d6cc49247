"""A study's own runs as result tables, one per phase, since phases are evaluated on different examples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attnlab.data import PROBES
from attnlab.training.plain import decode_nonfinite
from attnlab.training.record.files import read_json

from ...ledger.database import ENDED, ResultRow
from ..tables.metrics import COUNTED, recognise_metric
from ..tables.table import Cell, ResultTable, Run

if TYPE_CHECKING:
    from ...answers.study_folder import Record
    from ...plan.planning import PlannedRun

SCORES = {"exact_match": "exact"}
"""Figures whose per-example scores have another name."""


@dataclass(frozen=True)
class PhaseRuns:
    """The runs of one phase that ended, with their results in the ledger."""

    record: Record
    phase: str

    @cached_property
    def ended(self) -> list[tuple[PlannedRun, ResultRow]]:
        """The runs with a metric; a run that diverged has none."""
        rows = ((run, self.record.results.get(run.id)) for run in self.record.runs if run.phase == self.phase)
        return [(run, row) for run, row in rows if row is not None and row.status in ENDED]

    @cached_property
    def last(self) -> list[tuple[PlannedRun, dict[str, Any]]]:
        """The last evaluation of each run that has one, as its result holds it."""
        return [(run, row.result["last"]) for run, row in self.ended if row.result.get("last")]

    @cached_property
    def evaluations(self) -> dict[str, list[dict[str, Any]]]:
        """The evaluations of each run, by id."""
        lines = self.record.ledger.lines
        return {run.id: [decode_nonfinite(line) for line in lines(run.id, "evaluation")] for run, _ in self.ended}

    def name_group(self, run: PlannedRun) -> str:
        """Name the group that a run is compared in: its phase and size, if the study has several."""
        design = self.record.design
        return ", ".join([run.phase] * (len(design.phases) > 1) + [run.size] * (len(design.sizes) > 1))

    @cached_property
    def table(self) -> ResultTable:
        """Every evaluation of every run, except earlier ones that predicted a single class.

        Early in training classifiers often predict a single class, with the same score in every run.
        """
        cells = []
        for run, row in self.ended:
            last = row.result.get("last") or {}
            for line in self.evaluations[run.id]:
                is_early = line["step"] != last.get("step")
                if not (is_early and line.get("collapse", {}).get("one_class_only")):
                    names = [name for name in last.get("figures", line) if recognise_metric(name)]
                    cells += [cell for name in names for cell in self._make_cell(run, line["step"], name, line)]
        return self._make_table(cells, self._find_budgets())

    @cached_property
    def last_table(self) -> ResultTable:
        """The last evaluation of every run, which decides."""
        cells: list[Cell] = []
        for run, last in self.last:
            cells += self._make_cell(run, last["step"], last["primary"], decode_nonfinite(last["figures"]))
        return self._make_table(cells, {})

    def _make_table(self, cells: list[Cell], budgets: Mapping[Run, Mapping[str, str]]) -> ResultTable:
        """Make a table of cells, each with the number of examples that its metric counts."""
        design, counts = self.record.design, self._count_examples
        sized = tuple(replace(cell, num_examples=counts.get(cell.metric)) for cell in cells)
        return ResultTable(design.name, (f"phase '{self.phase}'",), sized, design.baseline, budgets)

    def _make_cell(self, run: PlannedRun, step: int, name: str, figures: Mapping[str, Any]) -> Iterator[Cell]:
        value = figures.get(name)
        if isinstance(value, int | float) and math.isfinite(value):
            place, group = f"{run.title}, step {step}, {name}", self.name_group(run)
            yield Cell(run.arm, group, name, str(run.seed), step, float(value), repr(float(value)), place)

    def load_scores(self, run: PlannedRun, metric: str) -> Any:
        """Return the per-example scores whose mean is a metric; None if there are none."""
        return self.record.ledger.scores(run.id, SCORES.get(metric, metric))

    @cached_property
    def _count_examples(self) -> dict[str, int]:
        """The number of examples behind each metric that counts correct ones, if it is the same in all runs."""
        counts: dict[str, set[int]] = {}
        for run, last in self.last:
            # A probe asks for several answers in one example, each of which counts.
            metrics = [] if run.run.task in PROBES else last.get("figures", ())
            for metric in metrics:
                scores = self.load_scores(run, metric) if recognise_metric(metric) in COUNTED else None
                if scores is not None:
                    counts.setdefault(metric, set()).add(len(scores))
        return {metric: next(iter(sizes)) for metric, sizes in counts.items() if len(sizes) == 1}

    def _find_budgets(self) -> dict[Run, dict[str, str]]:
        """Return the budget of each run, only for seeds that all arms have, since seeds may differ in tokens."""
        ended = {(run.size, run.arm, run.seed) for run, _ in self.ended}
        planned = {(run.size, run.arm) for run in self.record.runs if run.phase == self.phase}
        budgets = {}
        for run, row in self.ended:
            if all((size, arm, run.seed) in ended for size, arm in planned if size == run.size):
                batch = {"batch": ", ".join(str(segment.batch) for segment in run.run.segments)}
                tokens = {"tokens": str(row.result["tokens"])} if "tokens" in row.result else {}
                budgets[run.arm, self.name_group(run), str(run.seed)] = {**batch, **tokens}
        return budgets

    def count_answers(self) -> Iterator[tuple[PlannedRun, Mapping[str, int], float | None]]:
        """Yield how often each answer was given in a run's last evaluation, and the share of the most frequent label.

        For tasks without classes the answers are read from the run's folder, if it still exists.
        """
        for run, last in self.last:
            line = next((line for line in self.evaluations[run.id] if line["step"] == last["step"]), {})
            if "collapse" in line:
                yield run, line["collapse"]["predicted_counts"], line["collapse"]["majority_rate"]
                continue
            file = self.record.folder_of(run) / "predictions" / f"step-{last['step']:08d}.json"
            answers = read_json(file).get("predictions") if file.is_file() else None
            if answers:
                yield run, Counter(map(str, answers.values())), None
