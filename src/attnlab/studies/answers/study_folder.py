"""The record of a study, read from its folder at any time: plan, results, answers and findings."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError
from attnlab.training import RunSpec

from ..file.design import IS_RECORDED, Design
from ..integrity import IntegrityFinding
from ..integrity.study.examination import examine
from ..ledger.database import Ledger, ResultRow
from ..plan.audit_keys import find_audited_task, is_causal_task, list_lines
from ..plan.planning import PlannedRun
from ..run.overlap_record import SourceOverlap, read_overlaps
from .analysis import Answer, conclude
from .run_table import RunTable

FILE, LEDGER = "study.toml", "ledger.sqlite"
PLAN = "plan"
"""Name of the event of a completely planned study in the ledger."""


@dataclass(frozen=True)
class Record:
    """A study as it was last started: its design, its plan, and their results in the ledger.

    runs: in the order of the plan, without those of leaking arms that were not trained. obstacles: why arms cannot be
    compared. data: the hash of each source's splits. starts: versions, machine and command of each start. audits: keys
    in the ledger of each arm's audits, of its mechanism alone and installed in every size.
    """

    folder: Path
    ledger: Ledger
    design: Design
    runs: tuple[PlannedRun, ...]
    obstacles: Mapping[str, str]
    data: Mapping[str, Mapping[str, str]]
    starts: tuple[Mapping[str, Any], ...]
    audits: Mapping[str, tuple[str, ...]]

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
        return all(run.id in self.results or run.id in self.given_up for run in self.runs)

    @cached_property
    def answers(self) -> list[Answer]:
        """The answers of the study; none before every run has ended, which would be an undeclared look."""
        return conclude(self.design, self.runs, self.ledger, self.obstacles) if self.is_whole else []

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

    def folder_of(self, run: PlannedRun) -> Path:
        """Return where a run's files are."""
        return self.folder / "runs" / run.id


def find_folder(folder: str | Path) -> Path:
    """Return the path of a study's folder, which must exist."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise StudyError(f"{folder} is no folder; give the one a study was run in, attnlab run --out DIR")
    return path


@contextmanager
def open_record(folder: str | Path) -> Iterator[Record]:
    """Open the folder of a study for reading, also while it runs."""
    path = find_folder(folder)
    with closing(Ledger(path / LEDGER, is_new=False)) as ledger:
        yield read(path, ledger)


def read(folder: Path, ledger: Ledger) -> Record:
    """Read the record of a study."""
    designs, plans = ledger.events("design"), ledger.events(PLAN)
    if not designs or not plans:
        raise StudyError(f"{folder} holds a study that was never planned to its end; attnlab run goes on with it")
    plan, runs = json.loads(plans[-1]), []
    rows = {row.id: row for row in ledger.runs()}
    specs: dict[str, RunSpec] = {}  # runs that differ in their seed only are validated once
    for row in (rows[id] for id in plan["runs"] if id in rows):
        config = dict(row.config)
        parent, seed = config.pop("parent"), config.pop("seed", row.seed)
        key = json.dumps(config)
        if key not in specs:
            specs[key] = RunSpec.of({**config, "seed": seed})
        spec = specs[key].model_copy(update={"seed": seed})
        runs.append(PlannedRun(row.id, row.arm, row.size, row.phase, row.seed, spec, parent))
    starts = tuple(json.loads(event) for event in ledger.events("started"))
    design = _read_design(designs[-1], folder)
    # Older ledgers have no audits of installed mechanisms.
    audits = plan.get("audits") or {name: [*list_lines(design, name)] for name in design.arms}
    by_arm = {name: tuple(keys) for name, keys in audits.items()}
    return Record(folder, ledger, design, tuple(runs), plan["obstacles"], plan["data"], starts, by_arm)


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
