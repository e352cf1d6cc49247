"""A study's folder, read: what was planned, what came of it and what it says, at any time, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from ..plan.audit_keys import audited_task, lines_of, reads_forwards
from ..plan.planning import PlannedRun
from ..run.overlap_record import SourceOverlap, noted_overlaps
from .analysis import Answer, conclude
from .evidence import Evidence

FILE, LEDGER = "study.toml", "ledger.sqlite"
PLAN = "plan"
"""What the ledger calls the event of a study that was planned to its end."""


@dataclass(frozen=True)
class Record:
    """What a ledger knows of the study as it was last started."""

    folder: Path
    ledger: Ledger
    design: Design
    runs: tuple[PlannedRun, ...]
    """Those of the last start, in the order they were planned; runs of arms that leak and were not trained are none."""
    obstacles: Mapping[str, str]
    """Arms that cannot be compared, whatever they gave, and why."""
    data: Mapping[str, Mapping[str, str]]
    """The hash of each source's splits."""
    starts: tuple[Mapping[str, Any], ...]
    """Each time the study was started: versions, machine, command."""
    audits: Mapping[str, tuple[str, ...]]
    """What the ledger has the audits of each arm by: of its mechanism alone, and of every size it is installed in."""

    @cached_property
    def results(self) -> dict[str, ResultRow]:
        """What became of runs that have ended, by id."""
        return self.ledger.results()

    @cached_property
    def given_up(self) -> dict[str, str]:
        """Runs that were given up since the last start, by id, and why."""
        said = (event.partition(": ") for event in self.ledger.events("given up", since="started"))
        return {id: why for id, _, why in said if id not in self.results}

    @property
    def num_ended(self) -> int:
        """How many runs have ended."""
        return sum(run.id in self.results for run in self.runs)

    @property
    def is_whole(self) -> bool:
        """Whether no run is left to wait for."""
        return all(run.id in self.results or run.id in self.given_up for run in self.runs)

    @cached_property
    def answers(self) -> list[Answer]:
        """What the study says; nothing while a run is left to wait for, since that would be a look nobody declared."""
        return conclude(self.design, self.runs, self.ledger, self.obstacles) if self.is_whole else []

    @property
    def overlaps(self) -> list[SourceOverlap]:
        """How much of what each source holds out is trained on, as it was counted when the study ran."""
        return noted_overlaps(self.ledger, self.data)

    def audit_of(self, key: str) -> list[dict[str, Any]]:
        """Return what an audit found, by what the ledger has it by."""
        found = {is_causal: self.ledger.audit(key, is_causal) for is_causal in (True, False)}
        if None not in found.values():  # of an earlier start with other tasks
            return found[reads_forwards(audited_task(self.design))] or []
        return found[True] or found[False] or []

    @cached_property
    def findings(self) -> tuple[IntegrityFinding, ...]:
        """What the study finds when it examines itself, faults first."""
        return examine(self)

    def evidence(self, phase: str, size: str) -> Evidence:
        """Return the runs of one phase and size, by arm and seed."""
        runs: dict[str, dict[int, PlannedRun]] = {arm: {} for arm in self.design.arms}
        for run in self.runs:
            if (run.phase, run.size) == (phase, size):
                runs[run.arm][run.seed] = run
        return Evidence(runs, self.results, self.ledger, {run.id: run for run in self.runs})

    def folder_of(self, run: PlannedRun) -> Path:
        """Return where a run's files are."""
        return self.folder / "runs" / run.id


@contextmanager
def open_record(folder: str | Path) -> Iterator[Record]:
    """Open the folder of a study for reading, also while it runs."""
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise StudyError(f"{folder} is no folder; give the one a study was run in, attnlab run --out DIR")
    ledger = Ledger(place / LEDGER, is_new=False)
    try:
        yield read(place, ledger)
    finally:
        ledger.close()


def read(folder: Path, ledger: Ledger) -> Record:
    """Read what a ledger knows of the study as it was last started."""
    designs, plans = ledger.events("design"), ledger.events(PLAN)
    if not designs or not plans:
        raise StudyError(f"{folder} holds a study that was never planned to its end; attnlab run goes on with it")
    plan = json.loads(plans[-1])
    rows = {row.id: row for row in ledger.runs()}
    runs = []
    for id in plan["runs"]:
        if id in rows:
            row = rows[id]
            config = dict(row.config)
            parent = config.pop("parent")
            runs.append(PlannedRun(id, row.arm, row.size, row.phase, row.seed, RunSpec.of(config), parent))
    starts = tuple(json.loads(said) for said in ledger.events("started"))
    design = design_in(designs[-1], folder)
    # A ledger from before arms were audited as they are installed has each mechanism's own audit alone.
    audits = plan.get("audits") or {name: [*lines_of(design, name)] for name in design.arms}
    by_arm = {name: tuple(keys) for name, keys in audits.items()}
    return Record(folder, ledger, design, tuple(runs), plan["obstacles"], plan["data"], starts, by_arm)


def design_in(said: str, folder: Path) -> Design:
    """Read the design that a ledger has; its mechanisms were read when it was run, and may be unknown here."""
    try:
        return Design.model_validate(json.loads(said), strict=False, context={IS_RECORDED: True})
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ").splitlines()[0]
        raise StudyError(f"the study in {folder} cannot be read by this attnlab: {why}") from error
