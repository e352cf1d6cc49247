"""A study's own runs as result tables, one per phase, since phases are evaluated on different examples."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attnlab.data import PROBES
from attnlab.training.record.plain import unspell

from ..ledger.database import ENDED
from .metrics import COUNTED, kind_of
from .table import Cell, ResultTable

if TYPE_CHECKING:
    from ..answers.study_folder import Record
    from ..ledger.database import ResultRow
    from ..plan.planning import PlannedRun

Budgets = Mapping[tuple[str, str, str], Mapping[str, str]]
SCORES = {"exact_match": "exact"}
"""Figures whose per-example scores have another name."""


@dataclass(frozen=True)
class PhaseRuns:
    """The runs of one phase that ended, with their results in the ledger."""

    record: Record
    phase: str
    known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The evaluations that were read already, by run."""

    @cached_property
    def ended(self) -> list[tuple[PlannedRun, ResultRow]]:
        """The runs with a figure; a run that diverged has none."""
        rows = ((run, self.record.results.get(run.id)) for run in self.record.runs if run.phase == self.phase)
        return [(run, row) for run, row in rows if row is not None and row.status in ENDED]

    def group(self, run: PlannedRun) -> str:
        """Name the group that a run is compared in: its phase and size, if the study has several."""
        design = self.record.design
        parts = [run.phase] * (len(design.phases) > 1) + [run.size] * (len(design.sizes) > 1)
        return ", ".join(parts)

    def name(self, run: PlannedRun) -> str:
        """Name an arm within its group."""
        return " ".join(filter(None, (f"arm '{run.arm}'", self.group(run))))

    @cached_property
    def table(self) -> ResultTable:
        """Every evaluation of every run, except earlier ones that predicted a single class.

        Early in training classifiers often predict a single class, with the same score in every run.
        """
        cells = [cell for run, row in self.ended for cell in self.cells(run, row)]
        return self.make_table(cells, self.budgets())

    def last_table(self) -> ResultTable:
        """Return the last evaluation of every run, which decides."""
        cells: list[Cell] = []
        for run, row in self.ended:
            last = row.result.get("last")
            if last:
                cells += self.cell(run, last["step"], last["primary"], unspell(last["figures"]))
        return self.make_table(cells, {})

    def make_table(self, cells: list[Cell], budgets: Budgets) -> ResultTable:
        """Make a table of cells, each with the number of examples that its figure counts."""
        design, counts = self.record.design, self.num_examples()
        sized = tuple(replace(cell, num_examples=counts.get(cell.metric)) for cell in cells)
        return ResultTable(design.name, (f"phase '{self.phase}'",), sized, design.baseline, budgets)

    def cells(self, run: PlannedRun, row: ResultRow) -> Iterator[Cell]:
        """Yield the figures of a run, step by step."""
        last = row.result.get("last") or {}
        for line in self.evaluations(run):
            is_early = line["step"] != last.get("step")
            if not (is_early and line.get("collapse", {}).get("one_class_only")):
                for name in last.get("figures", line):
                    if kind_of(name):
                        yield from self.cell(run, line["step"], name, line)

    def cell(self, run: PlannedRun, step: int, name: str, figures: Mapping[str, Any]) -> Iterator[Cell]:
        """Yield one figure, if it is a finite number."""
        value = figures.get(name)
        if isinstance(value, int | float) and math.isfinite(value):
            place = f"{run.title}, step {step}, {name}"
            yield Cell(run.arm, self.group(run), name, str(run.seed), step, float(value), repr(float(value)), place)

    def evaluations(self, run: PlannedRun) -> list[dict[str, Any]]:
        """Return the lines of a run's evaluations."""
        if run.id not in self.known:
            self.known[run.id] = [unspell(line) for line in self.record.ledger.lines(run.id, "evaluation")]
        return self.known[run.id]

    def scores(self, run: PlannedRun, figure: str) -> Any:
        """Return the per-example scores whose mean is a figure; None if there are none."""
        return self.record.ledger.scores(run.id, SCORES.get(figure, figure))

    def num_examples(self) -> dict[str, int]:
        """Return the number of examples behind each figure that counts correct ones, if it is the same in all runs."""
        counts: dict[str, set[int]] = {}
        for run, row in self.ended:
            for figure in (row.result.get("last") or {}).get("figures", ()):
                # A probe asks for several answers in one example, each of which counts.
                is_counted = kind_of(figure) in COUNTED and run.run.task not in PROBES
                scores = self.scores(run, figure) if is_counted else None
                if scores is not None:
                    counts.setdefault(figure, set()).add(len(scores))
        return {figure: next(iter(found)) for figure, found in counts.items() if len(found) == 1}

    def whole_seeds(self) -> dict[str, set[int]]:
        """Return, by size, the seeds that ended in every arm."""
        found: dict[str, dict[str, set[int]]] = {}
        for run in self.record.runs:
            if run.phase == self.phase:
                found.setdefault(run.size, {}).setdefault(run.arm, set())
        for run, _ in self.ended:
            found[run.size][run.arm].add(run.seed)
        return {size: set.intersection(*arms.values()) for size, arms in found.items()}

    def budgets(self) -> Budgets:
        """Return the budget of each run, only for seeds that all arms have, since seeds may differ in tokens."""
        seeds, found = self.whole_seeds(), {}
        for run, row in self.ended:
            if run.seed in seeds[run.size]:
                given = {"batch": ", ".join(str(segment.batch) for segment in run.run.segments)}
                tokens = {"tokens": str(row.result["tokens"])} if "tokens" in row.result else {}
                found[run.arm, self.group(run), str(run.seed)] = {**given, **tokens}
        return found

    def answers(self) -> Iterator[tuple[PlannedRun, Mapping[str, int], float | None]]:
        """Yield how often each answer was given in a run's last evaluation, and the share of the most frequent label.

        For tasks without classes the answers are read from the run's folder, if it still exists.
        """
        for run, row in self.ended:
            last = row.result.get("last")
            if not last:
                continue
            line = next((one for one in self.evaluations(run) if one["step"] == last["step"]), {})
            if "collapse" in line:
                yield run, line["collapse"]["predicted_counts"], line["collapse"]["majority_rate"]
                continue
            file = self.record.folder_of(run) / "predictions" / f"step-{last['step']:08d}.json"
            given = json.loads(file.read_text(encoding="utf-8")).get("predictions") if file.is_file() else None
            if given:
                yield run, Counter(map(str, given.values())), None
