"""The record of a study, read from its folder at any time: plan, results, answers and findings."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError
from attnlab.inputs import expand_path
from attnlab.training import RunSpec

from ..file.design import IS_RECORDED, Design
from ..integrity import IntegrityFinding
from ..integrity.study.examination import examine
from ..ledger.database import Ledger, ResultRow
from ..plan.audit_keys import find_audited_task, is_causal_task, list_lines
from ..plan.planning import PlannedRun
from ..plan.search import Trial
from ..run.matching_record import read_matching
from ..run.overlap_record import SourceOverlap, read_overlaps
from ..run.trials import list_planned_runs
from .analysis import Answer, StudyAnswers, conclude
from .joint_answer import JointAnswer
from .ledger_damage import explain_damage
from .registration import digest
from .run_table import RunTable
from .search_outcome import SearchOutcome
from .target import TargetAnswer, judge_targets

FILE, LEDGER = "study.toml", "ledger.sqlite"
PLAN = "plan"
"""Name of the event of a completely planned study in the ledger."""


@dataclass(frozen=True)
class Record:
    """A study as it was last started: its design, its plan, and their results in the ledger.

    runs: in the order of the plan, without those of leaking arms that were not trained; trials: those of its search,
    which no verdict uses. num_runs: how many runs there will be once all trials have ended. obstacles: why arms cannot
    be compared. data: the hash of each source's splits. starts: versions, machine and command of each start. audits:
    keys in the ledger of each arm's audits, of its mechanism alone and installed in every size.
    """

    folder: Path
    ledger: Ledger
    design: Design
    runs: tuple[PlannedRun, ...]
    obstacles: Mapping[str, str]
    data: Mapping[str, Mapping[str, str]]
    starts: tuple[Mapping[str, Any], ...]
    audits: Mapping[str, tuple[str, ...]]
    trials: tuple[PlannedRun, ...] = ()
    num_runs: int = 0

    @cached_property
    def results(self) -> dict[str, ResultRow]:
        """Results of the runs that have ended, by id."""
        return self.ledger.results()

    @cached_property
    def given_up(self) -> dict[str, str]:
        """Runs that were given up since the last start, by id, and why."""
        return self.ledger.given_up()

    @property
    def failed(self) -> dict[str, str]:
        """Runs that were given up, by title, and why."""
        return {run.title: self.given_up[run.id] for run in self.runs if run.id in self.given_up}

    @property
    def num_ended(self) -> int:
        """Number of runs that have ended."""
        return sum(run.id in self.results for run in self.runs)

    @property
    def is_whole(self) -> bool:
        """Whether every run has ended or was given up."""
        has_ended = all(run.id in self.results or run.id in self.given_up for run in self.runs)
        return has_ended and len(self.runs) == self.num_runs

    @cached_property
    def _stored_answers(self) -> StudyAnswers:
        if not self.is_whole:
            return StudyAnswers([], [])
        return conclude(self.design, self.runs, self.ledger, self.obstacles, self.trials)

    @property
    def answers(self) -> list[Answer]:
        """The answers of the study; none before every run has ended, which would be an undeclared look."""
        return self._stored_answers.single

    @property
    def joint_answers(self) -> list[JointAnswer]:
        """The answers over sizes, horizons and tasks; none before every run has ended."""
        return self._stored_answers.joint

    @cached_property
    def targets(self) -> list[TargetAnswer]:
        """What each arm reaches of the targets of the study; none before every run has ended."""
        phases = [phase.name for phase in self.design.phases if phase.target is not None]
        if not phases or not self.is_whole:
            return []
        tables = {(phase, size): self.table(phase, size) for phase in phases for size in self.design.sizes}
        return judge_targets(self.design, tables, read_matching(self.ledger), self.answers, self.obstacles)

    @property
    def overlaps(self) -> list[SourceOverlap]:
        """The overlap of each source's held-out and training examples, counted when the study ran."""
        return read_overlaps(self.ledger, self.data)

    def audit_of(self, key: str) -> list[dict[str, Any]]:
        """Return the findings of an audit, by its key in the ledger."""
        causal, bidirectional = (self.ledger.audit(key, is_causal) for is_causal in (True, False))
        if causal is not None and bidirectional is not None:  # one is from an earlier start with other tasks
            return causal if is_causal_task(find_audited_task(self.design)) else bidirectional
        return causal or bidirectional or []

    @cached_property
    def findings(self) -> tuple[IntegrityFinding, ...]:
        """The findings of the integrity checks on the study itself, faults first."""
        return examine(self)

    def table(self, phase: str, size: str) -> RunTable:
        """Return the runs of one phase and size, by arm and seed."""
        return RunTable.select((phase, size), self.design.arms, self.runs, self.results, self.ledger)

    def search_outcome(self, phase: str, size: str) -> SearchOutcome:
        """Return what the search tried and chose in one phase and size."""
        return SearchOutcome.select(phase, size, self.trials, self.runs)

    def folder_of(self, run: PlannedRun) -> Path:
        """Return where a run's files are."""
        return self.folder / "runs" / run.id


def find_folder(folder: str | Path) -> Path:
    """Return the path of a study's folder, which must exist."""
    path = expand_path(folder)
    if not path.is_dir():
        raise StudyError(f"{folder} is no folder; give the one a study was run in, attnlab run --out DIR")
    return path


@contextmanager
def open_record(folder: str | Path) -> Iterator[Record]:
    """Open the folder of a study for reading, also while it runs."""
    path = find_folder(folder)
    with explain_damage(path / LEDGER), closing(Ledger(path / LEDGER, is_new=False)) as ledger:
        yield read(path, ledger)


def read(folder: Path, ledger: Ledger) -> Record:
    """Read the record of a study."""
    designs, plans = ledger.events("design"), ledger.events(PLAN)
    if not designs or not plans:
        raise StudyError(f"{folder} holds a study that was never planned to its end; attnlab run goes on with it")
    plan, runs = json.loads(plans[-1]), []
    rows = {row.id: row for row in ledger.runs()}
    specs: dict[str, RunSpec] = {}  # runs that differ in their seed only are validated once
    for row in (rows[id] for id in (*plan["runs"], *list_planned_runs(ledger, digest(plans[-1]))) if id in rows):
        config = dict(row.config)
        parent, trial, chosen = config.pop("parent"), config.pop("trial", None), config.pop("chosen", {})
        seed = config.pop("seed", row.seed)
        key = json.dumps(config)
        if key not in specs:
            specs[key] = RunSpec.of({**config, "seed": seed})
        spec, trial = specs[key].model_copy(update={"seed": seed}), None if trial is None else Trial.of(trial)
        runs.append(PlannedRun(row.id, row.arm, row.size, row.phase, row.seed, spec, parent, trial, chosen))
    starts = tuple(json.loads(event) for event in ledger.events("started"))
    design = _read_design(designs[-1], folder)
    # Older ledgers have no audits of installed mechanisms.
    audits = plan.get("audits") or {name: [*list_lines(design, name)] for name in design.arms}
    by_arm = {name: tuple(keys) for name, keys in audits.items()}
    compared = [run for run in runs if not run.is_trial]
    if design.search is not None:  # in the order of the study, and not of the trials' ends
        phases = [phase.name for phase in design.phases]
        order = {place: at for at, place in enumerate(product(phases, design.sizes, design.arms, design.seeds))}
        compared.sort(key=lambda run: order[run.phase, run.size, run.arm, run.seed])
    return Record(
        folder, ledger, design, tuple(compared), plan["obstacles"], plan["data"], starts, by_arm,
        tuple(run for run in runs if run.is_trial), plan.get("num_runs", len(compared)),
    )  # fmt: skip


def _read_design(content: str, folder: Path) -> Design:
    recorded = json.loads(content)
    for phase in recorded.get("phases", []):
        phase.pop("has_tensorboard", None)  # in older ledgers; now one of `trackers`
    # The mechanisms were checked when the study was run, and may be unknown here.
    try:
        return Design.model_validate(recorded, strict=False, context={IS_RECORDED: True})
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ").splitlines()[0]
        raise StudyError(f"the study in {folder} cannot be read by this attnlab: {why}") from error
