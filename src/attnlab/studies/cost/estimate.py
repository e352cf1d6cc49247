"""What a study will cost on this machine: runs, parameters, operations, memory, disk and time, before any of it is run.

A run takes start + updates · one update + evaluations · one evaluation + checkpoints · one checkpoint; each of these is
measured in a short trial (`trial.py`). The study takes what its runs take with so many workers (`timetable.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError
from attnlab.machine import num_cores
from attnlab.training import RunSpec

from ..answers.study_folder import LEDGER
from ..ledger.database import Ledger
from ..plan.planning import PlannedRun
from ..run.execution import RUNS, resolved
from ..run.run_outputs import has_ended
from ..study import Study
from .timetable import wall_seconds
from .trial import Timing
from .trials import Trials
from .workload import Workload

SECONDS, FEW_SECONDS = 3.0, 1.0
"""For the timing of updates in a trial, and again for its evaluation; the second where an estimate is to be quick."""
Say = Callable[[str], Any]


@dataclass(frozen=True)
class Pace:
    """How an estimate is made. crowding: how many times the cores all workers together want."""

    is_timed: bool
    is_quick: bool
    crowding: float

    @property
    def seconds(self) -> float:
        """For the timing of a trial; 0 for none."""
        return (FEW_SECONDS if self.is_quick else SECONDS) * self.is_timed


@dataclass(frozen=True)
class Cost:
    """What the runs of one phase, size and arm cost."""

    phase: str
    size: str
    arm: str
    num_runs: int
    num_ended: int
    workload: Workload | None = None
    """Of one run; None where all have ended."""
    timing: Timing | None = None
    """None where nothing was timed."""

    @property
    def num_left(self) -> int:
        """Runs that have not ended."""
        return self.num_runs - self.num_ended

    @property
    def update(self) -> float | None:
        """The seconds of one update, on average over the segments."""
        if self.workload is None or self.timing is None:
            return None
        segments = zip(self.workload.segments, self.timing.updates, strict=True)
        return sum(segment.num_steps * own for segment, own in segments) / self.workload.num_steps

    @property
    def seconds(self) -> float | None:
        """What one run takes."""
        if self.workload is None or self.timing is None or self.update is None:
            return None
        work, time = self.workload, self.timing
        looks = work.num_evaluations * time.evaluation + time.known
        return time.start + work.num_steps * self.update + looks + work.num_checkpoints * (time.checkpoint or 0.0)

    @property
    def memory(self) -> int:
        """Bytes of one run: measured, or without activations where nothing was."""
        if self.workload is None:
            return 0
        return self.workload.state_bytes if self.timing is None else self.timing.memory

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        work = self.workload
        totals = {} if work is None else {
            "num_steps": work.num_steps, "num_tokens": work.num_tokens, "operations": work.operations,
            "kept_bytes": work.kept_bytes,
        }  # fmt: skip
        return {**asdict(self), **totals, "seconds": self.seconds, "memory": self.memory if work else None}


@dataclass(frozen=True)
class Estimate:
    """What a study costs, from here to its end."""

    costs: tuple[Cost, ...]
    ended: frozenset[str]
    """The ids of runs that have ended."""
    workers: int
    seconds: float | None
    """To the study's end; None where nothing was timed."""
    notes: tuple[str, ...]
    """What must be said beside the numbers."""

    @property
    def num_left(self) -> int:
        """Runs that have not ended."""
        return sum(cost.num_left for cost in self.costs)

    @property
    def operations(self) -> float:
        """Of all updates that are left."""
        return sum(cost.num_left * cost.workload.operations for cost in self.costs if cost.workload)

    @property
    def kept_bytes(self) -> int:
        """What the runs that are left will leave on the disk."""
        return sum(cost.num_left * cost.workload.kept_bytes for cost in self.costs if cost.workload)

    @property
    def memory(self) -> int:
        """What as many runs as there are workers hold at once, the largest ones."""
        sizes = sorted((cost.memory for cost in self.costs for _ in range(cost.num_left)), reverse=True)
        return sum(sizes[: self.workers])

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "costs": [cost.record() for cost in self.costs],
            "runs": sum(cost.num_runs for cost in self.costs), "ended": len(self.ended), "workers": self.workers,
            "operations": self.operations, "kept_bytes": self.kept_bytes, "memory": self.memory,
            "seconds": self.seconds, "notes": list(self.notes),
        }  # fmt: skip


def estimate(
    study: Study, out: str | Path | None = None, workers: int = 1, *, is_timed: bool = True, is_quick: bool = False,
    say: Say = str,
) -> Estimate:  # fmt: skip
    """Estimate what a study costs; runs that have ended in `out` cost nothing.

    is_timed: whether anything is timed. is_quick: whether the baseline alone is tried, for a shorter time, and stands
    for the other arms.
    """
    if workers < 1:
        raise StudyError(f"workers are at least 1, not {workers}")
    planned = study.plan()
    ended, precision = known_of(study, planned, out)
    pace = Pace(is_timed, is_quick, max(1.0, workers * study.threads / num_cores()))
    costs, opening = costs_of(study, planned, ended, precision, pace, say)
    seconds = {(cost.phase, cost.size, cost.arm): (cost.seconds or 0.0) * pace.crowding for cost in costs}
    left = [run for run in planned if run.id not in ended]
    by_id = {run.id: seconds[run.phase, run.size, run.arm] for run in left}
    wall = opening + wall_seconds(left, by_id, workers) if is_timed else None
    return Estimate(costs, ended, workers, wall, tuple(notes_of(study, costs, pace)))


def known_of(study: Study, planned: Sequence[PlannedRun], out: str | Path | None) -> tuple[frozenset[str], str | None]:
    """Return the runs that have ended in a study's folder, and what `auto` is there; another study is refused."""
    folder = None if not out else Path(out).expanduser()
    if folder is None or not folder.is_dir():
        return frozenset(), None
    ended = {run.id for run in planned if has_ended(folder / RUNS / run.id)}
    if not (folder / LEDGER).exists():
        return frozenset(ended), None
    ledger = Ledger(folder / LEDGER, is_new=False)
    try:
        name = ledger.fact("study")
        if name not in (None, study.design.name):
            raise StudyError(f"{folder} holds the study '{name}', not '{study.design.name}'; give another folder")
        return frozenset(ended | (ledger.results().keys() & {run.id for run in planned})), ledger.fact("precision")
    finally:
        ledger.close()


def costs_of(
    study: Study, planned: Sequence[PlannedRun], ended: frozenset[str], precision: str | None, pace: Pace, say: Say
) -> tuple[tuple[Cost, ...], float]:  # fmt: skip
    """Try a run of each phase, size and arm that has one left; return the costs, and what starting workers takes."""
    groups: dict[tuple[str, str, str], list[PlannedRun]] = {}
    for run in planned:
        groups.setdefault((run.phase, run.size, run.arm), []).append(run)
    by_id = {run.id: run for run in planned}
    tried: dict[tuple[str, str, str], tuple[Workload, Timing | None]] = {}
    costs = []
    with Trials(study.plugins) as trials:
        for (phase, size, arm), runs in groups.items():
            num_ended = sum(run.id in ended for run in runs)
            cost = Cost(phase, size, arm, len(runs), num_ended)
            if num_ended < len(runs):
                key = (phase, size, study.design.baseline if pace.is_quick else arm)
                if key not in tried:
                    title, one = ", ".join(key), groups[key][0]
                    say(f"trying {title}")
                    tried[key] = trials.put(title, resolved(one.run, precision), ancestor(one, by_id), pace.seconds)
                cost = replace(cost, workload=tried[key][0], timing=tried[key][1])
            costs.append(cost)
        return tuple(costs), trials.opening


def ancestor(run: PlannedRun, by_id: Mapping[str, PlannedRun]) -> RunSpec | None:
    """Return the run that a run comes after in the end, None where it comes after none."""
    first = run
    while first.parent is not None:
        first = by_id[first.parent]
    return None if first is run else first.run


def notes_of(study: Study, costs: Sequence[Cost], pace: Pace) -> Iterator[str]:
    """Say what the numbers rest on, and what they leave out."""
    if not any(cost.num_left for cost in costs):
        return
    if pace.is_timed:
        timings = [cost.timing for cost in costs if cost.timing is not None]
        yield f"time is from {min(one.num_timed for one in timings)} updates or more of each kind of run, timed now"
        yield "memory is measured: what a run's process grows by, or takes on a GPU"
        if any(one.checkpoint is None for one in timings):
            yield "checkpoints are not in the time: the temporary folder has no room to try one"
    else:
        yield "no time, since nothing was timed; memory is weights, gradients and the optimizer's, without activations"
    if pace.is_quick:
        yield f"'{study.design.baseline}' alone was tried; the other arms are taken to cost the same"
    if pace.is_timed and pace.crowding > 1:
        yield f"workers and their threads are {pace.crowding:.3g} times the cores: runs take as many times as long"
    left = {cost.phase for cost in costs if cost.num_left}
    phases = [phase for phase in study.design.phases if phase.name in left]
    if later := [phase.name for phase in phases if phase.after is not None]:
        yield f"tried from fresh weights, since those of the phase before are not there yet: {', '.join(later)}"
    if watched := [phase.name for phase in phases if phase.trace_every is not None or phase.sample_every is not None]:
        yield f"traces and samples are not in the time: {', '.join(watched)}"
    yield "the audit of each arm comes once, before anything is trained, and is not in the time"
