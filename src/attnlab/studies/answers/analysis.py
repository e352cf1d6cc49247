"""From a ledger to verdicts: each arm against the baseline, for every phase and size that the study compares.

All primary comparisons of a study are one family: without adjustment, a study with 18 comparisons (3 arms, 3 phases,
3 sizes) and no true difference would report one with probability 1/3.
"""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attnlab.errors import AttnlabWarning, StatisticsError
from attnlab.notebook import Facts, Showable
from attnlab.statistics import Comparison, compare
from attnlab.statistics.next_step import explain_next_step
from attnlab.statistics.question import choose_late_gain
from attnlab.statistics.stability import UNKNOWN
from attnlab.statistics.verdict import MIN_SEEDS, NOT_COMPARABLE
from attnlab.statistics.widening import explain_widening
from attnlab.tasks.scores import LOWER_IS_BETTER

from ..file.design import Design, Phase
from ..integrity.tables.metrics import find_limits
from ..ledger.database import Ledger, ResultRow
from ..plan.matching import Matching
from ..plan.planning import PlannedRun
from ..run.matching_record import read_matching
from .fairness import Fairness
from .family import decide_family
from .joint_answer import JointAnswer, JointData
from .overall_answer import conclude_tasks
from .registration import RegistrationStatus, check_registration, digest, note_verdict
from .run_table import RunTable, explain_leak
from .search_outcome import SearchOutcome
from .trend_answer import judge_horizons, judge_sizes


@dataclass(frozen=True, repr=False)
class Answer(Showable):
    """The result for one arm in one phase and size; `comparison` is None if there was nothing to compare."""

    phase: str
    size: str
    arm: str
    figure: str
    verdict: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    registration: str = ""
    """Whether the verdict is as declared beforehand: AS REGISTERED, CHANGED AFTER LOOKING (…), …"""

    @property
    def place(self) -> str:
        """The arm, phase and size in words."""
        return f"{self.arm}, {self.phase}, {self.size}"

    def facts(self) -> Facts:
        """Return the verdict, and the figures of the comparison."""
        compared = Facts("") if self.comparison is None else self.comparison.facts()
        known = () if self.comparison is None else self.comparison.notes
        rows = [*(("note", note) for note in self.notes if note not in known), *compared.rows]
        return Facts(self.place, f"{self.figure}: {self.verdict}", rows=rows, is_good=compared.is_good)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        comparison = None if self.comparison is None else self.comparison.record()
        return {**vars(self), "notes": list(self.notes), "comparison": comparison}


@dataclass(frozen=True)
class StudyAnswers:
    """What a study says: of each arm in each phase and size, and of each arm over sizes, horizons and tasks."""

    single: list[Answer]
    joint: list[JointAnswer]


def explain_unknown_stability(answer: Answer) -> tuple[str, ...]:
    """Return why it is unknown whether an arm is as stable as the baseline, and what would tell; empty if known."""
    comparison = answer.comparison
    if comparison is None or comparison.stability != UNKNOWN or answer.verdict.startswith("NOT COMPARABLE"):
        return ()
    return (f"{UNKNOWN}: {comparison.data.stability.reason}",)


def explain_answers(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Say once which intervals are widened, and what would decide the answers that are INCONCLUSIVE."""
    comparisons = {
        f"{answer.phase}, {answer.size}, {answer.arm}": answer.comparison
        for answer in answers if answer.comparison is not None
    }  # fmt: skip
    return *explain_widening(comparisons), *explain_next_step(comparisons)


def common_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return the notes that all of several answers have, so that they are printed once."""
    if len(answers) < 2:
        return ()
    return tuple(note for note in answers[0].notes if all(note in answer.notes for answer in answers))


def conclude(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str],
    trials: Sequence[PlannedRun] = (),
) -> StudyAnswers:  # fmt: skip
    """Return the answers of a study whose runs have all ended, from the ledger if nothing has changed since.

    New verdicts are noted in the ledger as printed. obstacles: why arms cannot be compared. trials: of its search.
    """
    rows_by_id = ledger.results()
    results = _digest_results(planned, rows_by_id)
    status = check_registration(ledger, study, results)
    rows = [(run.id, *((row.status, row.result) if (row := rows_by_id.get(run.id)) else ())) for run in planned]
    basis = digest([_digest_code(), study.model_dump(mode="json"), dict(obstacles), vars(status), rows])
    stored = ledger.answers(basis)
    if stored is not None:
        return _storage().validate_python(json.loads(stored))
    single = analyse(study, planned, ledger, obstacles, status, trials)
    data = JointData(study, planned, ledger, single, status)
    answers = StudyAnswers(single, [*judge_sizes(data), *judge_horizons(data), *conclude_tasks(data)])
    compared = [answer.comparison for answer in single if answer.comparison is not None]
    is_look = any(not one.question.obstacle and one.data.num_seeds >= MIN_SEEDS for one in compared)
    if ledger.is_read_only:
        message = f"{ledger.path.parent} cannot be written, so its ledger does not note that these verdicts were seen"
        warnings.warn(message, AttnlabWarning, stacklevel=2)
        return answers
    with ledger.transaction():
        note_verdict(ledger, study, results, is_look)
        ledger.add_answers(basis, json.dumps(_storage().dump_python(answers)))
    return answers


@cache
def _storage() -> TypeAdapter[StudyAnswers]:
    return TypeAdapter(StudyAnswers)


def _digest_results(planned: Sequence[PlannedRun], rows_by_id: Mapping[str, ResultRow]) -> str:
    """Return a hash of the runs' figures, by which a second look at the same results is recognized."""
    rows = []
    for run in sorted(planned, key=lambda run: run.id):
        row = rows_by_id.get(run.id)
        last = None if row is None else row.result.get("last")
        rows.append((run.id, None if row is None else row.status, last and last["figures"]))
    return digest(rows)


@cache
def _digest_code() -> str:
    # The version alone would keep stale answers while the statistics are being developed.
    folders = Path(__file__).parents[2] / "statistics", Path(__file__).parent
    files = [file.read_text(encoding="utf-8") for folder in folders for file in sorted(folder.glob("*.py"))]
    return digest([version("attnlab"), *files])


def count_comparisons(study: Design) -> int:
    """Return how many comparisons a study makes: all arms but the baseline, in every size of every compared phase."""
    return sum(phase.smallest is not None for phase in study.phases) * len(study.sizes) * len(study.tested_arms)


@dataclass(frozen=True)
class _Cell:
    """One phase and size of a study, in which every arm is compared with the baseline."""

    study: Design
    phase: Phase
    size: str
    table: RunTable
    outcome: SearchOutcome
    matching: Matching

    @property
    def metric(self) -> str:
        """The metric that is compared; empty before any evaluation."""
        return self.table.metric or ""

    def compare(self, arm: str, obstacle: str) -> Comparison:
        measured = self.table.measure((self.study.baseline, arm), self.metric)
        gains = {name: self.table.late_gain(name, self.metric) for name in (self.study.baseline, arm)}
        late_gain, late_gain_of = choose_late_gain(gains)
        return compare(
            measured.tables[self.study.baseline], measured.tables[arm], not self.study.is_aa(arm),
            float(self.phase.smallest or 1.0),
            higher_is_better=self.metric not in LOWER_IS_BETTER, obstacle=obstacle, clusters=measured.clusters,
            scale=measured.scale, floor=None if self.table.floor is None else self.table.floor[0],
            ceiling=self.table.ceiling, late_gain=late_gain, late_gain_of=late_gain_of,
            condition=self.fairness.describe(arm), limits=find_limits(self.metric, self.table.ceiling),
        )  # fmt: skip

    @property
    def fairness(self) -> Fairness:
        """How the arms were made comparable."""
        return Fairness(self.study, self.phase, self.size, self.outcome, self.matching)

    def explain_unpaired(self, arm: str) -> str:
        """Return why an arm is not paired with the baseline; empty if it is, or has other seeds on purpose."""
        if self.study.is_aa(arm):
            return ""
        seeds = self.table.shared_seeds(self.study.baseline, arm, metric=self.metric)
        return self.table.explain_unpaired(self.study.baseline, arm, seeds, has_own_shapes=self.fairness.has_own_shapes)

    def explain_missing(self, arm: str) -> str:
        """Return why there is nothing to compare; empty if there is."""
        if not self.metric:
            return "no run has a figure: each of them failed, or the study names nothing to evaluate on (data.NAME.dev)"
        for subject, name in (("the baseline", self.study.baseline), ("it", arm)):
            values = self.table.values(name, self.metric)
            if not any(value is not None for value in values.values()):
                if not values:
                    return f"{subject} was not trained"
                return f"none of the {len(values)} runs of {subject} has a figure"
        has_pairs = self.table.shared_seeds(self.study.baseline, arm, metric=self.metric)
        return "" if has_pairs or self.study.is_aa(arm) else "no seed has a figure in both arms"

    def list_notes(self) -> Iterator[str]:
        """Yield the notes for every arm."""
        if self.table.floor is not None:
            yield f"the floor is {self.table.floor[0]:.4g}: {self.table.floor[1]}"
        phases, phase = {phase.name: phase for phase in self.study.phases}, self.phase
        while phase.after is not None:
            phase = phases[phase.after]
            if phase.is_shared:
                yield f"'{phase.name}' was trained once per arm: seeds only vary what comes after it"
                return


def analyse(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str],
    status: RegistrationStatus, trials: Sequence[PlannedRun] = (),
) -> list[Answer]:  # fmt: skip
    """Compare every arm with the baseline. obstacles: why arms cannot be compared, whatever their results."""
    results, matching = ledger.results(), read_matching(ledger)
    cells = [
        _Cell(
            study, phase, size, RunTable.select((phase.name, size), study.arms, planned, results, ledger),
            SearchOutcome.select(phase.name, size, trials, planned), matching,
        )
        for phase in study.phases if phase.smallest is not None
        for size in study.sizes
    ]  # fmt: skip
    drafts = [(cell, _draft(cell, arm, obstacles)) for cell in cells for arm in study.arms if arm != study.baseline]
    # Arms that cannot be compared in any case are not part of the family.
    free = {arm for arm in study.arms if not obstacles.get(arm) and not obstacles.get(study.baseline)}
    family = {at: one.comparison for at, (_, one) in enumerate(drafts) if one.comparison and one.arm in free}
    # The baseline against itself is no question of the study, so it takes no part of its alpha.
    apart = {at: one for at, one in family.items() if study.is_aa(drafts[at][1].arm)}
    decided = decide_family(study, {at: one for at, one in family.items() if at not in apart}, status)
    for at, one in apart.items():
        decided |= decide_family(study, {at: one}, status)
    answers: list[Answer] = []
    for at, (cell, draft) in enumerate(drafts):
        comparison = decided.get(at, draft.comparison)
        on_scores = decided[at].notes if at in decided else ()
        fair = cell.fairness.list_notes(draft.arm, comparison)
        notes = (*draft.notes, *on_scores, *filter(None, [status.note]), *cell.list_notes(), *fair)
        verdict = draft.verdict if comparison is None else comparison.verdict
        answers.append(replace(draft, verdict=verdict, comparison=comparison, notes=notes, registration=status.words))
    return answers


def _draft(cell: _Cell, arm: str, obstacles: Mapping[str, str]) -> Answer:
    """Return an answer before it is decided as one of a family."""
    baseline, comparison = cell.study.baseline, None
    barred = obstacles.get(arm) or (f"of the baseline, {obstacles[baseline]}" if obstacles.get(baseline) else "")
    missing = cell.explain_missing(arm)
    obstacle = barred or missing
    if not missing:
        obstacle = barred or cell.explain_unpaired(arm)
        try:
            comparison = cell.compare(arm, obstacle)
        except StatisticsError as error:
            obstacle = str(error)
    verdict = NOT_COMPARABLE.format(obstacle) if comparison is None else comparison.verdict
    notes = (explain_leak(cell.table, arm, baseline, cell.metric),) if obstacles.get(arm) and not missing else ()
    return Answer(cell.phase.name, cell.size, arm, cell.metric, verdict, comparison, notes)
