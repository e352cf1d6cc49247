"""The progress of a study, read at any moment from its ledger and the metrics of its runs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from attnlab.training.loop.progress import format_duration
from attnlab.training.record.folder import read_num_steps
from attnlab.training.record.lock import LOCK

from ..ledger.database import Ledger
from ..plan.planning import PlannedRun
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
    """A reader of a study's folder that reads only what is new. has_curves: read curves of ended runs too."""

    def __init__(self, folder: str | Path, *, has_curves: bool = False) -> None:
        self.folder = find_folder(folder)
        self.has_curves = has_curves
        self.tails: dict[str, Tail] = {}
        self.lengths: dict[str, int] = {}

    def look(self) -> Snapshot:
        """Return the present state of the study."""
        with closing(Ledger(self.folder / LEDGER, is_new=False)) as ledger:
            is_going = _is_locked(self.folder)
            designs = ledger.events("design")
            record = read(self.folder, ledger) if designs and ledger.events(PLAN) else None
            if record is None or not (record.runs or record.trials):
                question = str(json.loads(designs[-1]).get("question", "")) if designs else ""
                return Snapshot(ledger.fact("study") or "", question, "preparing" if is_going else "stopped")
            going = set(ledger.list_active()) if is_going else set[str]()
            runs = tuple(self._read_progress(record, run, going) for run in (*record.trials, *record.runs))
            condition: Condition = "ended" if record.is_whole else "running" if is_going else "stopped"
            left = _estimate_seconds_left(runs, record) if condition == "running" else None
            boards = tuple(rank_arms(record, {one.run.id: one.loss for one in runs if one.state == RUNNING}))
            design = record.design
            num_ended = sum(one.run.id in record.results for one in runs)
            return Snapshot(design.name, design.question, condition, runs, num_ended, left, boards)

    def _read_progress(self, record: Record, run: PlannedRun, going: set[str]) -> RunProgress:
        result, folder = record.results.get(run.id), record.folder_of(run)
        state = RUNNING if run.id in going else WAITING
        if result is not None or run.id in record.given_up:
            state = GIVEN_UP if result is None else result.status
        tail = Tail(folder)
        if state == RUNNING or self.has_curves:
            tail = self.tails.setdefault(run.id, tail)
            tail.read()
        if result is not None:
            step, length = int(result.result["step"]), int(result.result["num_steps"])
            return RunProgress(run, state, step, length, tail.loss, evaluation=tail.evaluation, curve=tail.curve)
        if state != RUNNING:
            return RunProgress(run, state, tail.step, loss=tail.loss, curve=tail.curve)
        num_steps = self.lengths.get(run.id) or read_num_steps(folder)
        if num_steps is not None:
            self.lengths[run.id] = num_steps
        left = None if num_steps is None or tail.pace is None else (num_steps - tail.step) * tail.pace
        return RunProgress(
            run, state, tail.step, num_steps, tail.loss, tail.tokens_per_second, left, tail.evaluation, tail.curve
        )


def _estimate_seconds_left(runs: Sequence[RunProgress], record: Record) -> float | None:
    """Estimate the time until the last run ends: each takes as long as similar ones, and several run at a time."""
    durations = record.ledger.durations()
    known: dict[tuple[str, ...], list[float]] = {}
    for one in runs:
        seconds = _estimate_duration(one, record, durations)
        for kind in _list_kinds(one.run) if seconds is not None else ():
            known.setdefault(kind, []).append(seconds or 0.0)
    lefts: list[float] = []
    for one in (one for one in runs if one.state in (RUNNING, WAITING)):
        similar = next((fmean(known[kind]) for kind in _list_kinds(one.run) if kind in known), None)
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
