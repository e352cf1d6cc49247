"""The cost of a study on this machine before it is run: runs, parameters, operations, memory, disk space and time.

`estimate_cost` has three methods. "measured" builds one run of each phase, size and arm and times some of its updates
(`timing.py`); a run takes start + updates + evaluations + checkpoints. "counted" builds the same runs and times nothing
(`run/workload.py`). "predicted" needs neither data nor weights: it divides operations by a speed (`prediction.py`).
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnlab.errors import StudyError
from attnlab.inputs import expand_path
from attnlab.machine import num_cores

from ..answers.study_folder import LEDGER
from ..file.design import Design
from ..file.overrides import select_grid
from ..ledger.database import Ledger
from ..plan.matching import Matching
from ..plan.planning import PlannedRun
from ..plan.search import count_trials
from ..run.execution import RUNS, has_ended, resolve_precision
from ..run.workload import Workload
from .prediction import OPENING, UnknownError, predict_audit_seconds, predict_run
from .timing import RunTimer, RunTiming

if TYPE_CHECKING:
    from ..study import Study

TRIAL_SECONDS = 3.0
"""For the timed updates of a run, and again for its evaluation."""
Method = Literal["measured", "counted", "predicted"]
Say = Callable[[str], Any]
Kind = tuple[str, str, str]
"""The phase, size and arm of a run: runs that differ only in their seed or in what a search tries cost the same."""


@dataclass(frozen=True)
class RunCost:
    """The cost of the runs of one phase, size and arm."""

    phase: str
    size: str
    arm: str
    num_runs: int
    num_ended: int
    workload: Workload | None = None
    """Of one run; None if all have ended, or if no run was built."""
    timing: RunTiming | None = None
    """None if nothing was timed."""
    seconds: float | None = None
    """Of one run; None if unknown."""

    @property
    def num_left(self) -> int:
        """Runs that have not ended."""
        return self.num_runs - self.num_ended

    @property
    def memory(self) -> int:
        """Bytes of one run: measured, or without activations if nothing was timed."""
        if self.workload is None:
            return 0
        return self.workload.state_bytes if self.timing is None else self.timing.memory

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        work = self.workload
        names = ("num_steps", "num_tokens", "operations", "kept_bytes") if work is not None else ()
        totals = {name: getattr(work, name) for name in names}
        return {**asdict(self), **totals, "memory": self.memory if work else None}


@dataclass(frozen=True)
class CostEstimate:
    """The cost of a study from now to its end."""

    method: Method
    costs: tuple[RunCost, ...]
    ended: frozenset[str]
    """The ids of runs that have ended."""
    workers: int
    seconds: float | None
    """To the end of the study; None if nothing was timed, or if something is unknown."""
    notes: tuple[str, ...] = ()
    """How the numbers were obtained, and what they do not include."""
    unknown: tuple[str, ...] = ()
    """Missing inputs of a prediction."""

    @property
    def num_runs(self) -> int:
        """All runs of the study."""
        return sum(cost.num_runs for cost in self.costs)

    @property
    def num_left(self) -> int:
        """Runs that have not ended."""
        return sum(cost.num_left for cost in self.costs)

    @property
    def operations(self) -> float:
        """Of all remaining updates."""
        return sum(cost.num_left * cost.workload.operations for cost in self.costs if cost.workload)

    @property
    def kept_bytes(self) -> int:
        """The disk space of the checkpoints of the remaining runs."""
        return sum(cost.num_left * cost.workload.kept_bytes for cost in self.costs if cost.workload)

    @property
    def memory(self) -> int:
        """The memory of the largest runs, one for each worker."""
        sizes = sorted((cost.memory for cost in self.costs for _ in range(cost.num_left)), reverse=True)
        return sum(sizes[: self.workers])

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "method": self.method, "costs": [cost.record() for cost in self.costs],
            "runs": self.num_runs, "ended": len(self.ended), "workers": self.workers,
            "operations": self.operations, "kept_bytes": self.kept_bytes, "memory": self.memory,
            "seconds": self.seconds, "notes": list(self.notes),
        }  # fmt: skip


def estimate_cost(
    study: "Study", out: str | Path | None = None, workers: int = 1, *, method: Method = "measured", say: Say = str
) -> CostEstimate:
    """Estimate the cost of a study; runs that have ended in `out` cost nothing, unless the cost is predicted."""
    if workers < 1:
        raise StudyError(f"workers must be at least 1, not {workers}")
    crowding = max(1.0, workers * study.threads / num_cores())
    if method == "predicted":
        return _predict_cost(study, workers, crowding)
    planner = study.make_planner(out=out)
    planned = planner.list_runs(None)
    ended, precision = _read_progress(study, planned, out)
    costs, opening = _time_runs(study, planned, ended, precision, TRIAL_SECONDS if method == "measured" else 0.0, say)
    seconds = None
    if method == "measured":
        by_kind = {(cost.phase, cost.size, cost.arm): (cost.seconds or 0.0) * crowding for cost in costs}
        left = [run for run in planned if run.id not in ended]
        by_id = {run.id: by_kind[_name_kind(run)] for run in left}
        seconds = opening + schedule_runs(left, by_id, workers)
    matched = _describe_matching(study.design, planner.matching)
    notes = (*matched, *_list_notes(study, costs, method, crowding))
    return CostEstimate(method, costs, ended, workers, seconds, notes)


def schedule_runs(runs: Sequence[PlannedRun], seconds: Mapping[str, float], workers: int) -> float:
    """Return the seconds until the last run ends; a run starts after its parent, unless that is not among the runs.

    seconds: of each run, by its id.
    """
    ids = {run.id for run in runs}
    children: dict[str, list[int]] = defaultdict(list)
    ready: list[int] = []
    for number, run in enumerate(runs):
        if run.parent is not None and run.parent in ids:
            children[run.parent].append(number)
        else:
            ready.append(number)
    going: list[tuple[float, int]] = []
    now = 0.0
    while ready or going:
        while ready and len(going) < workers:
            number = heapq.heappop(ready)
            heapq.heappush(going, (now + seconds[runs[number].id], number))
        now, ended = heapq.heappop(going)
        for number in children[runs[ended].id]:
            heapq.heappush(ready, number)
    return now


def _predict_cost(study: "Study", workers: int, crowding: float) -> CostEstimate:
    design, costs = study.design, list[RunCost]()
    unknown: dict[str, None] = {}
    for phase, size, arm in product(design.phases, design.sizes, design.arms):
        try:
            seconds = predict_run(design, phase, size, arm)
        except UnknownError as error:
            unknown[str(error)], seconds = None, None
        num_runs = 1 if phase.is_shared else len(design.seeds)
        if design.search is not None and (grid := select_grid(design, phase, design.arms[arm])):
            times = 1 if design.search.repeat == "once" else num_runs
            num_runs += times * count_trials(design.search, grid)
        costs.append(RunCost(phase.name, size, arm, num_runs, 0, seconds=seconds))
    total = sum(cost.num_runs * (cost.seconds or 0.0) for cost in costs)
    at_once = min(workers, sum(cost.num_runs for cost in costs))
    wall = None if unknown else OPENING + predict_audit_seconds(design) + total * crowding / at_once
    return CostEstimate("predicted", tuple(costs), frozenset(), workers, wall, unknown=tuple(unknown))


def _read_progress(
    study: "Study", planned: Sequence[PlannedRun], out: str | Path | None
) -> tuple[frozenset[str], str | None]:
    """Return the runs that have ended in a study's folder, and the precision that `auto` stands for there."""
    folder = None if not out else expand_path(out)
    if folder is None or not folder.is_dir():
        return frozenset(), None
    ended = {run.id for run in planned if has_ended(folder / RUNS / run.id)}
    if not (folder / LEDGER).exists():
        return frozenset(ended), None
    with closing(Ledger(folder / LEDGER, is_new=False)) as ledger:
        name = ledger.fact("study")
        if name not in (None, study.design.name):
            raise StudyError(f"{folder} holds the study '{name}', not '{study.design.name}'; give another folder")
        return frozenset(ended | (ledger.results().keys() & {run.id for run in planned})), ledger.fact("precision")


def _time_runs(
    study: "Study", planned: Sequence[PlannedRun], ended: frozenset[str], precision: str | None, budget: float, say: Say
) -> tuple[tuple[RunCost, ...], float]:
    """Time a run of each kind that has remaining runs; return the costs, and the seconds until workers have started."""
    kinds: dict[Kind, list[PlannedRun]] = {}
    for run in planned:
        kinds.setdefault(_name_kind(run), []).append(run)
    by_id = {run.id: run for run in planned}
    costs = []
    with RunTimer(study.plugins) as timer:
        for kind, runs in kinds.items():
            num_ended = sum(run.id in ended for run in runs)
            if num_ended == len(runs):
                costs.append(RunCost(*kind, len(runs), num_ended))
                continue
            title = ", ".join(kind)
            say(f"{'timing' if budget else 'counting operations of'} {title}")
            first = runs[0]  # of its chain of phases
            while first.parent is not None:
                first = by_id[first.parent]
            spec = resolve_precision(runs[0].run, precision)
            workload, timing = timer.time_run(title, spec, None if first is runs[0] else first.run, budget)
            seconds = None if timing is None else timing.add_up(workload)
            costs.append(RunCost(*kind, len(runs), num_ended, workload, timing, seconds))
        return tuple(costs), timer.opening


def _name_kind(run: PlannedRun) -> Kind:
    share = Fraction(1) if run.trial is None else run.trial.share
    return run.phase, run.size, run.arm if share == 1 else f"{run.arm}, {share} of the steps"


def _describe_matching(design: Design, matching: Matching) -> Iterator[str]:
    for place in matching.counts:
        if place[2] != design.baseline and not design.is_aa(place[2]):
            yield from (f"{', '.join(place[:2])}: {note}" for note in matching.describe(place, design.baseline))


def _list_notes(study: "Study", costs: Sequence[RunCost], method: Method, crowding: float) -> Iterator[str]:
    if not any(cost.num_left for cost in costs):
        return
    if method == "measured":
        timings = [cost.timing for cost in costs if cost.timing is not None]
        num_timed = min(timing.num_timed for timing in timings)
        yield f"operations are counted; time is measured: {num_timed} or more updates of each kind of run were timed"
        yield "memory is measured: the growth of a run's process, or its peak on a GPU"
        if any(timing.checkpoint is None for timing in timings):
            yield "time does not include checkpoints: the temporary folder has no space to write one"
        if crowding > 1:
            yield f"workers and their threads are {crowding:.3g} times the cores, so each run takes that much longer"
    else:
        yield "operations and memory are counted; nothing was timed"
        yield "memory is weights, gradients and the state of the optimizer, without activations"
    left = {cost.phase for cost in costs if cost.num_left}
    phases = [phase for phase in study.design.phases if phase.name in left]
    if later := [phase.name for phase in phases if phase.after is not None]:
        yield f"timed with new weights, since those of the earlier phase do not exist yet: {', '.join(later)}"
    if watched := [phase.name for phase in phases if phase.trace_every is not None or phase.sample_every is not None]:
        yield f"time does not include traces and samples: {', '.join(watched)}"
    yield "time does not include the audit of each arm, once before training"
