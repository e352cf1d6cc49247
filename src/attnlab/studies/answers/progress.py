"""What is going on in a study's folder: read from its ledger and from what its runs have written, at any moment."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from attnlab.errors import StudyError
from attnlab.training.folder import read_num_steps
from attnlab.training.record.lock import LOCK

from ..ledger.database import Ledger, ResultRow
from ..plan.planning import PlannedRun
from .leaderboard import Standing, standings
from .run_tail import Seen, Tail
from .study_folder import LEDGER, PLAN, Record, read

Condition = Literal["preparing", "running", "stopped", "ended"]
"""Preparing: mechanisms are audited and runs planned. Stopped: runs are left, and no process works on them."""
RUNNING, WAITING, GIVEN_UP = "running", "waiting", "given up"


@dataclass(frozen=True)
class RunProgress:
    """One run of a study, as far as it is."""

    run: PlannedRun
    state: str
    """running, waiting, given up, or what became of it."""
    step: int = 0
    num_steps: int | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    """Of updates, at the pace of the last ones; None while it is not known."""
    evaluation: Seen | None = None
    curve: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment."""

    name: str
    question: str
    condition: Condition
    runs: tuple[RunProgress, ...] = ()
    num_ended: int = 0
    seconds_left: float | None = None
    """Until no run is left to wait for, as long as runs took so far; None while it is not known."""
    standings: tuple[Standing, ...] = ()

    @property
    def going(self) -> list[RunProgress]:
        """The runs that are trained now."""
        return [one for one in self.runs if one.state == RUNNING]

    @property
    def num_given_up(self) -> int:
        """How many runs are not waited for any more."""
        return sum(one.state == GIVEN_UP for one in self.runs)


class Progress:
    """Looks at a study's folder again and again, and reads what is new alone. has_curves: of ended runs too."""

    def __init__(self, folder: str | Path, *, has_curves: bool = False) -> None:
        self.folder = Path(folder).expanduser()
        self.has_curves = has_curves
        self.tails: dict[str, Tail] = {}
        self.lengths: dict[str, int] = {}
        if not self.folder.is_dir():
            raise StudyError(f"{folder} is no folder; give the one a study was run in, attnlab run --out DIR")

    def look(self) -> Snapshot:
        """Say how things stand now."""
        with closing(Ledger(self.folder / LEDGER, is_new=False)) as ledger:
            is_going = is_at_work(self.folder)
            if not ledger.events("design") or not ledger.events(PLAN):
                return begun(ledger, is_going)
            record = read(self.folder, ledger)
            if not record.runs:
                return begun(ledger, is_going)
            runs = self.runs(record, set(ledger.going()) if is_going else set())
            condition: Condition = "ended" if record.is_whole else "running" if is_going else "stopped"
            left = seconds_left(runs, record.results, ledger.durations()) if condition == "running" else None
            losses = {one.run.id: one.loss for one in runs if one.state == RUNNING}
            found = tuple(standings(record, losses))
            return Snapshot(record.design.name, record.design.question, condition, runs, record.num_ended, left, found)

    def runs(self, record: Record, going: set[str]) -> tuple[RunProgress, ...]:
        """Say of every run how far it is."""
        found = []
        for run in record.runs:
            result = record.results.get(run.id)
            if result is not None:
                state = result.status
            elif run.id in record.given_up:
                state = GIVEN_UP
            else:
                state = RUNNING if run.id in going else WAITING
            found.append(self.progress_of(run, state, result, record.folder_of(run)))
        return tuple(found)

    def progress_of(self, run: PlannedRun, state: str, result: ResultRow | None, folder: Path) -> RunProgress:
        """Say how far one run is."""
        is_read = state == RUNNING or self.has_curves
        tail = self.tails.setdefault(run.id, Tail(folder)) if is_read else Tail(folder)
        if is_read:
            tail.read()
        if result is not None:
            step, length = int(result.result["step"]), int(result.result["num_steps"])
            return RunProgress(run, state, step, length, tail.loss, evaluation=tail.evaluation, curve=tail.curve)
        if state != RUNNING:
            return RunProgress(run, state, tail.step, loss=tail.loss, curve=tail.curve)
        num_steps = self.length_of(run, folder)
        left = None if num_steps is None or tail.pace is None else (num_steps - tail.step) * tail.pace
        return RunProgress(
            run, state, tail.step, num_steps, tail.loss, tail.tokens_per_second, left, tail.evaluation, tail.curve
        )

    def length_of(self, run: PlannedRun, folder: Path) -> int | None:
        """Return how many updates a run has, as soon as it says so."""
        if run.id not in self.lengths:
            length = read_num_steps(folder)
            if length is None:
                return None
            self.lengths[run.id] = length
        return self.lengths[run.id]


def begun(ledger: Ledger, is_going: bool) -> Snapshot:
    """Return what is known of a study that has not planned its runs yet."""
    designs = ledger.events("design")
    question = str(json.loads(designs[-1]).get("question", "")) if designs else ""
    return Snapshot(ledger.fact("study") or "", question, "preparing" if is_going else "stopped")


def seconds_left(
    runs: Sequence[RunProgress], results: Mapping[str, ResultRow], durations: Mapping[str, float]
) -> float | None:  # fmt: skip
    """Estimate how long it is until no run is left: each as long as its like took, shared by those that go at once."""
    known: dict[tuple[str, ...], list[float]] = {}
    for one in runs:
        took = whole_seconds(one, results, durations)
        if took is not None:
            for kind in kinds_of(one.run):
                known.setdefault(kind, []).append(took)
    lefts: list[float] = []
    for one in (one for one in runs if one.state in (RUNNING, WAITING)):
        like = next((fmean(known[kind]) for kind in kinds_of(one.run) if kind in known), None)
        left = one.seconds_left if one.seconds_left is not None else like
        if left is None:
            return None
        lefts.append(left)
    num_at_once = max(1, sum(one.state == RUNNING for one in runs))
    return max(sum(lefts) / num_at_once, max(lefts, default=0.0))


def whole_seconds(
    one: RunProgress, results: Mapping[str, ResultRow], durations: Mapping[str, float]
) -> float | None:  # fmt: skip
    """Return how long a run took, or will have taken at its pace; None where that is not known."""
    if one.run.id in results:
        # A run that was found, or went on, took longer than the attempt it ended in.
        return max(durations.get(one.run.id, 0.0), float(results[one.run.id].result["seconds"]))
    if one.seconds_left is None or one.num_steps is None or one.step >= one.num_steps:
        return None
    return one.seconds_left * one.num_steps / (one.num_steps - one.step)


def kinds_of(run: PlannedRun) -> list[tuple[str, ...]]:
    """Return what runs are alike by, the closest first."""
    return [(run.phase, run.size, run.arm), (run.phase, run.size)]


def is_at_work(folder: Path) -> bool:
    """Tell whether a process holds a study's folder, without taking the lock from one that is about to."""
    try:
        holder = json.loads((folder / LOCK).read_bytes())
        if holder["host"] != platform.node():
            return True  # of another machine's process nothing more can be known from here
        os.kill(int(holder["pid"]), 0)
    except PermissionError:
        return True  # somebody else's process, and there
    except (OSError, ValueError, TypeError, KeyError):
        return False  # nobody's: an empty file is one that was let go
    return True
