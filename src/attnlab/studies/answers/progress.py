"""The progress of a study, read at any moment from its ledger and the metrics of its runs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from attnlab.training.loop.progress import format_duration
from attnlab.training.plain import decode_nonfinite
from attnlab.training.record.folder import read_num_steps
from attnlab.training.record.lock import LOCK

from ..ledger.database import Ledger, ResultRow
from ..plan.planning import PlannedRun
from ..run.trials import PLANNED
from .leaderboard import Leaderboard, rank_arms
from .run_tail import EvaluationPoint, Tail
from .study_folder import LEDGER, PLAN, Record, find_folder, read

Condition = Literal["preparing", "running", "stopped", "ended"]
"""Preparing: mechanisms are audited and runs planned. Stopped: runs are left, but no process is running them."""
RUNNING, WAITING, GIVEN_UP = "running", "waiting", "given up"


@dataclass(frozen=True)
class RunProgress:
    """The progress of one run. state: running, waiting, given up, or the status of its result.

    seconds_left: of updates, at the recent pace; None if unknown.
    """

    run: PlannedRun
    state: str
    step: int = 0
    num_steps: int | None = None
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    evaluation: EvaluationPoint | None = None
    curve: Sequence[tuple[int, float]] = ()
    held_out: Sequence[tuple[int, float]] = ()
    """The primary metric of the evaluations during training, by step."""


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment. seconds_left: until the last run ends, estimated from ended runs; None if unknown."""

    name: str
    question: str
    condition: Condition
    runs: tuple[RunProgress, ...] = ()
    num_ended: int = 0
    seconds_left: float | None = None
    leaderboards: tuple[Leaderboard, ...] = ()
    command: str = ""
    """The command that it was last started with, which resumes it."""

    @property
    def going(self) -> list[RunProgress]:
        """The runs that are being trained."""
        return [run for run in self.runs if run.state == RUNNING]

    @property
    def num_given_up(self) -> int:
        """Number of runs that were given up."""
        return sum(run.state == GIVEN_UP for run in self.runs)

    @property
    def share(self) -> float:
        """The share of the runs that is done, with the steps of those that are going."""
        done = self.num_ended + self.num_given_up + sum(run.step / run.num_steps for run in self.going if run.num_steps)
        return min(1.0, done / max(1, len(self.runs)))

    @property
    def headline(self) -> str:
        """How many runs have ended, and the time left."""
        given_up = f", {self.num_given_up} given up" if self.num_given_up else ""
        left = "time left not yet known"
        if self.seconds_left is not None:
            left = f"about {format_duration(self.seconds_left)} left"
        return f"{self.num_ended} of {len(self.runs)} runs have ended, {len(self.going)} going{given_up}, {left}"


class Progress:
    """A reader of a study's folder that reads only what is new. num_curves: ended runs whose curves are read too."""

    def __init__(self, folder: str | Path, *, num_curves: int = 0) -> None:
        self.folder = find_folder(folder)
        self.num_curves = num_curves
        self.tails: dict[str, Tail] = {}
        self.lengths: dict[str, int] = {}
        self.seen: dict[str, RunProgress] = {}
        self.ledger: Ledger | None = None
        self.inode = 0
        self.record: Record | None = None
        self.basis: object = None

    def look(self) -> Snapshot:
        """Return the present state of the study."""
        with closing(self._open_ledger()) as ledger:
            condition: Condition
            is_going = _is_locked(self.folder)
            designs = ledger.events("design")
            record = self._read_record(ledger, designs)
            if record is None or not (record.runs or record.trials):
                question = str(json.loads(designs[-1]).get("question", "")) if designs else ""
                condition = "preparing" if is_going else "stopped"
                return Snapshot(ledger.fact("study") or "", question, condition, command=_read_command(ledger))
            going = set(ledger.list_active()) if is_going else set[str]()
            begun, planned = ledger.begun(), (*record.trials, *record.runs)
            ended = [run.id for run in reversed(planned) if run.id in record.results]
            drawn = set(ended[: max(0, self.num_curves - len(going))])
            runs = tuple(self._read_progress(record, run, going, begun, drawn) for run in planned)
            condition = "ended" if record.is_whole else "running" if is_going else "stopped"
            left = _estimate_seconds_left(runs, record) if condition == "running" else None
            boards = tuple(rank_arms(record, {one.run.id: one.loss for one in runs if one.state == RUNNING}))
            design = record.design
            num_ended = sum(one.run.id in record.results for one in runs)
            command = _read_command(ledger)
            return Snapshot(design.name, design.question, condition, runs, num_ended, left, boards, command)

    def _open_ledger(self) -> Ledger:
        """Open the ledger; rows that were read before are not read again, unless it is another file."""
        path = self.folder / LEDGER
        inode = path.stat().st_ino if path.exists() else 0
        if inode != self.inode:
            self.ledger, self.record, self.inode = None, None, inode
            self.seen.clear()
        self.ledger = Ledger(path, is_new=False, before=self.ledger)
        return self.ledger

    def _read_record(self, ledger: Ledger, designs: list[str]) -> Record | None:
        """Read what is planned, if it has changed since; None before anything is."""
        plans = ledger.events(PLAN)
        if not designs or not plans:
            return None
        basis = (designs[-1], plans[-1], len(ledger.runs()), len(ledger.events(PLANNED)))
        if self.record is None or basis != self.basis:
            self.record, self.basis = read(self.folder, ledger), basis
            self.seen.clear()
        self.record = replace(self.record, ledger=ledger)
        return self.record

    def _read_progress(
        self, record: Record, run: PlannedRun, going: set[str], begun: set[str], drawn: set[str]
    ) -> RunProgress:  # fmt: skip
        result = record.results.get(run.id)
        state = RUNNING if run.id in going else WAITING
        if result is not None or run.id in record.given_up:
            state = GIVEN_UP if result is None else result.status
        known = self.seen.get(run.id)
        if known is not None and known.state == state != RUNNING and bool(known.curve) == (run.id in drawn):
            return known
        progress = self._read_ended_run(record, run, result, run.id in drawn) if result is not None else (
            self._read_unfinished_run(record, run, state, run.id in begun)
        )  # fmt: skip
        self.seen[run.id] = progress
        return progress

    def _read_ended_run(self, record: Record, run: PlannedRun, row: ResultRow, is_drawn: bool) -> RunProgress:
        result, tail = row.result, self._read_tail(record, run) if is_drawn else None
        last, loss = result.get("last"), decode_nonfinite(result.get("loss"))
        evaluation = last and EvaluationPoint(
            int(last["step"]), last["primary"], float(decode_nonfinite(last["figures"][last["primary"]]))
        )
        step, num_steps = int(result["step"]), int(result["num_steps"])
        progress = RunProgress(run, row.status, step, num_steps, loss, evaluation=evaluation)
        return progress if tail is None else replace(progress, curve=tail.curve, held_out=tail.held_out)

    def _read_tail(self, record: Record, run: PlannedRun) -> Tail:
        if run.id not in self.tails:
            self.tails[run.id] = Tail(record.folder_of(run))
        self.tails[run.id].read()
        return self.tails[run.id]

    def _read_unfinished_run(self, record: Record, run: PlannedRun, state: str, has_begun: bool) -> RunProgress:
        if state != RUNNING and not (has_begun and self.num_curves):
            return RunProgress(run, state)
        tail = self._read_tail(record, run)
        if state != RUNNING:
            curves = tail.evaluation, tail.curve, tail.held_out
            return RunProgress(run, state, tail.step, None, tail.loss, None, None, *curves)
        num_steps = self.lengths.get(run.id) or read_num_steps(record.folder_of(run))
        if num_steps is not None:
            self.lengths[run.id] = num_steps
        left = None if num_steps is None or tail.pace is None else (num_steps - tail.step) * tail.pace
        return RunProgress(
            run, state, tail.step, num_steps, tail.loss, tail.tokens_per_second, left, tail.evaluation, tail.curve,
            tail.held_out,
        )  # fmt: skip


def _read_command(ledger: Ledger) -> str:
    starts = ledger.events("started")
    return str(json.loads(starts[-1]).get("command", "")) if starts else ""


def _estimate_seconds_left(runs: Sequence[RunProgress], record: Record) -> float | None:
    """Estimate the time until the last run ends: each takes as long as similar ones, and several run at a time."""
    durations = record.ledger.durations()
    known: dict[tuple[str, ...], list[float]] = {}
    for one in runs:
        seconds = _estimate_duration(one, record, durations)
        for kind in _list_kinds(one.run) if seconds is not None else ():
            known.setdefault(kind, []).append(seconds or 0.0)
    means = {kind: fmean(seconds_of_kind) for kind, seconds_of_kind in known.items()}
    lefts: list[float] = []
    for one in (one for one in runs if one.state in (RUNNING, WAITING)):
        similar = next((means[kind] for kind in _list_kinds(one.run) if kind in means), None)
        left = one.seconds_left if one.seconds_left is not None else similar
        if left is None:
            return None
        lefts.append(left)
    num_at_once = max(1, sum(one.state == RUNNING for one in runs))
    return max(sum(lefts) / num_at_once, max(lefts, default=0.0))


def _estimate_duration(one: RunProgress, record: Record, durations: Mapping[str, float]) -> float | None:
    if one.run.id in record.results:
        # A run that was resumed took longer than its last attempt.
        return max(durations.get(one.run.id, 0.0), float(record.results[one.run.id].result["seconds"]))
    if one.seconds_left is None or one.num_steps is None or one.step >= one.num_steps:
        return None
    return one.seconds_left * one.num_steps / (one.num_steps - one.step)


def _list_kinds(run: PlannedRun) -> list[tuple[str, ...]]:
    # What makes runs similar, the closest first.
    return [(run.phase, run.size, run.arm), (run.phase, run.size)]


def _is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock of a folder, without taking it."""
    try:
        holder = json.loads((folder / LOCK).read_bytes())
        if holder["host"] != platform.node():
            return True  # a process of another machine cannot be checked from here
        os.kill(int(holder["pid"]), 0)
    except PermissionError:
        return True  # a process of another user
    except (OSError, ValueError, TypeError, KeyError):
        return False  # an empty file is a released lock
    return True
