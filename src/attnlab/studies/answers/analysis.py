"""From a ledger to verdicts: each arm against the baseline, for every phase and size that the study compares.

All primary comparisons of a study are one family: a study of 3 arms, 3 phases and 3 sizes asks 18 questions, and
without an adjustment over all of them a third of such studies would find a difference where there is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, compare, conclude_family
from attnlab.statistics.comparison import conclude as conclude_comparison
from attnlab.statistics.question import ALPHA
from attnlab.statistics.verdict import FEWEST_SEEDS, NOT_COMPARABLE
from attnlab.tasks.scores import LOWER_IS_BETTER

from ..file.design import Design, Phase
from ..ledger.database import Ledger
from ..plan.planning import PlannedRun
from .registration import RegistrationStatus, check_registration, note_verdict
from .run_table import RunTable, explain_leak


@dataclass(frozen=True)
class Answer:
    """What a study says of one arm, in one phase and size; no comparison where there was nothing to compare."""

    phase: str
    size: str
    arm: str
    figure: str
    verdict: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    registration: str = ""
    """How the verdict stands to what was declared beforehand: AS REGISTERED, CHANGED AFTER LOOKING (…), …"""

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        comparison = None if self.comparison is None else self.comparison.record()
        return {**vars(self), "notes": list(self.notes), "comparison": comparison}


def common_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return the notes that stand beside every one of several answers, to be said once."""
    if len(answers) < 2:
        return ()
    return tuple(note for note in answers[0].notes if all(note in answer.notes for answer in answers))


def conclude(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str]
) -> list[Answer]:  # fmt: skip
    """Answer a study whose runs have all ended: once, and from the ledger as long as nothing has changed.

    The ledger also notes the verdicts as ones that were printed. obstacles: why arms cannot be compared.
    """
    results = _digest_results(planned, ledger)
    status = check_registration(ledger, study, results)
    basis = _digest_basis(study, planned, ledger, obstacles, status)
    stored = ledger.answers(basis)
    if stored is not None:
        return _storage().validate_python(json.loads(stored))
    answers = analyse(study, planned, ledger, obstacles, status)
    with ledger.together():
        note_verdict(ledger, study, results, is_look=any(map(_could_conclude, answers)))
        ledger.add_answers(basis, json.dumps(_storage().dump_python(answers)))
    return answers


@cache
def _storage() -> TypeAdapter[list[Answer]]:
    return TypeAdapter(list[Answer])


def _could_conclude(answer: Answer) -> bool:
    one = answer.comparison
    return one is not None and not one.question.obstacle and one.data.num_seeds >= FEWEST_SEEDS


def _digest_results(planned: Sequence[PlannedRun], ledger: Ledger) -> str:
    """Return a hash of the runs' figures: the same results, looked at again, are one look."""
    results = ledger.results()
    rows = []
    for run in sorted(planned, key=lambda one: one.id):
        row = results.get(run.id)
        last = None if row is None else row.result.get("last")
        rows.append((run.id, None if row is None else row.status, last and last["figures"]))
    return _digest(rows)[:16]


def _digest_basis(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str],
    status: RegistrationStatus,
) -> str:  # fmt: skip
    """Return a hash of what answers are computed from: code, design, runs and their results, registration."""
    results = ledger.results()
    rows = [(run.id, *((row.status, row.result) if (row := results.get(run.id)) else ())) for run in planned]
    return _digest([_digest_code(), study.model_dump(mode="json"), dict(obstacles), vars(status), rows])


@cache
def _digest_code() -> str:
    # The version alone would keep stale answers while the statistics are developed.
    folders = Path(__file__).parents[2] / "statistics", Path(__file__).parent
    files = [file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.glob("*.py"))]
    return _digest([version("attnlab"), *files])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def analyse(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str],
    status: RegistrationStatus,
) -> list[Answer]:  # fmt: skip
    """Compare every arm with the baseline. obstacles: why arms cannot be compared, whatever they gave."""
    results = ledger.results()
    cells = [
        _Cell(study, phase, size, RunTable.select((phase.name, size), study.arms, planned, results, ledger))
        for phase in study.phases if phase.smallest is not None
        for size in study.sizes
    ]  # fmt: skip
    drafts = [cell.draft(arm, obstacles) for cell in cells for arm in study.arms if arm != study.baseline]
    # Arms that could not be compared whatever the seeds gave are no part of the family.
    family = {at: draft.comparison for at, draft in enumerate(drafts) if draft.comparison and not draft.is_barred}
    decided = _decide_family(study, family, status)
    return [draft.answer(decided.get(at, draft.comparison), status) for at, draft in enumerate(drafts)]


def count_comparisons(study: Design) -> int:
    """Return how many comparisons a study makes: arms but the baseline, in every size of every phase that compares."""
    return sum(phase.smallest is not None for phase in study.phases) * len(study.sizes) * (len(study.arms) - 1)


def _decide_family(
    study: Design, family: Mapping[int, Comparison], status: RegistrationStatus
) -> dict[int, Comparison]:  # fmt: skip
    """Decide the comparisons of a study as one family: by Holm, or each at its share if there are several looks."""
    if study.looks is None and status.is_declared:
        return conclude_family(family)
    alpha = ALPHA / max(1, len(family))
    # Fewer seeds than the first look has give no verdict; the e-process takes any number of them.
    is_look = isinstance(study.looks, list) and len(study.seeds) in study.looks and status.is_declared
    looks = study.looks if is_look else "open"
    return {
        key: conclude_comparison(one.estimate, replace(one.question, alpha=alpha, looks=looks), one.data)
        for key, one in family.items()
    }


@dataclass(frozen=True)
class _Draft:
    """A comparison before it is decided among the others of its study."""

    cell: _Cell
    arm: str
    comparison: Comparison | None
    obstacle: str = ""
    notes: tuple[str, ...] = ()
    is_barred: bool = False
    """Whether the arms could not be compared whatever the seeds gave."""

    def answer(self, decided: Comparison | None, status: RegistrationStatus) -> Answer:
        """Make an answer of the decided comparison, with its notes."""
        cell, notes = self.cell, list(self.notes)
        if decided is not None and not self.is_barred:  # beside a leak, what the seeds show is of no use
            notes += decided.notes
        if status.note:
            notes.append(status.note)
        if cell.table.floor is not None:
            notes.append(f"the floor is {cell.table.floor[0]:.4g}: {cell.table.floor[1]}")
        shared = next((phase.name for phase in cell.ancestors() if phase.is_shared), None)
        if shared is not None:
            notes.append(f"'{shared}' was trained once an arm: seeds vary what comes after it alone")
        verdict = NOT_COMPARABLE.format(self.obstacle) if decided is None else decided.verdict
        return Answer(cell.phase.name, cell.size, self.arm, cell.figure, verdict, decided, tuple(notes), status.words)


@dataclass(frozen=True)
class _Cell:
    """One phase and size of a study, in which every arm is compared with the baseline."""

    study: Design
    phase: Phase
    size: str
    table: RunTable

    @property
    def figure(self) -> str:
        """The figure that decides; empty before any run was evaluated."""
        return self.table.figure or ""

    def draft(self, arm: str, obstacles: Mapping[str, str]) -> _Draft:
        """Compare one arm; if it cannot be compared, the reason is the answer."""
        baseline = self.study.baseline
        barred = obstacles.get(arm) or (f"of the baseline, {obstacles[baseline]}" if obstacles.get(baseline) else "")
        missing = self._explain_missing(arm)
        if missing:
            return _Draft(self, arm, None, barred or missing, is_barred=bool(barred))
        seeds = self.table.shared_seeds(baseline, arm, figure=self.figure)
        obstacle = barred or self.table.explain_unpaired(baseline, arm, seeds)
        notes = (explain_leak(self.table, arm, baseline, self.figure),) if obstacles.get(arm) else ()
        try:
            return _Draft(self, arm, self._compare(arm, obstacle), obstacle, notes, bool(barred))
        except StatisticsError as error:
            return _Draft(self, arm, None, str(error), notes, bool(barred))

    def _compare(self, arm: str, obstacle: str) -> Comparison:
        arms = baseline, _ = self.study.baseline, arm
        measured = self.table.measure(arms, self.figure)
        gains = [gain for gain in (self.table.late_gain(one, self.figure) for one in arms) if gain is not None]
        return compare(
            measured.tables[baseline], measured.tables[arm], True, float(self.phase.smallest or 1.0),
            higher_is_better=self.figure not in LOWER_IS_BETTER, obstacle=obstacle, clusters=measured.clusters,
            scale=measured.scale, floor=None if self.table.floor is None else self.table.floor[0],
            ceiling=self.table.ceiling, late_gain=max(gains, default=None),
        )  # fmt: skip

    def _explain_missing(self, arm: str) -> str:
        """Say why there is nothing to compare; empty if there is."""
        if not self.figure:
            return "no run was evaluated; has the data a dev split?"
        for name, one in (("the baseline", self.study.baseline), ("it", arm)):
            values = self.table.values(one, self.figure)
            if not any(value is not None for value in values.values()):
                return f"none of the {len(values)} runs of {name} has a figure" if values else f"{name} was not trained"
        has_pairs = self.table.shared_seeds(self.study.baseline, arm, figure=self.figure)
        return "" if has_pairs else "no seed has a figure in both arms"

    def ancestors(self) -> Iterator[Phase]:
        """Yield the phases that this one comes after."""
        phases = {phase.name: phase for phase in self.study.phases}
        phase = self.phase
        while phase.after is not None:
            phase = phases[phase.after]
            yield phase
