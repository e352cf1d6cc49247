"""The execution of a study: workers train its runs, and each result enters the ledger once, whatever dies meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.errors import AttnlabError, StudyError
from attnlab.training import RunSpec
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.record.files import read_json
from attnlab.training.record.folder import PAIRING, RESULT
from attnlab.training.record.metrics import Metrics
from attnlab.training.record.plain import spell, unspell

from ..ledger.database import ENDED, Delivery, Ledger, RunRow
from ..plan.planning import PlannedRun
from .cluster import RayWorkers
from .parcel import update_paths
from .workers import LocalWorkers, RunEvent, RunOrder, Workers

RUNS = "runs"
MOST_FAILURES = 2
"""Attempts of a run that may fail before it is given up."""
MOST_LOSSES = 5
"""Nodes that a run may lose before that counts as a failure of its own."""
Say = Callable[[str], None]
Tick = Callable[[], None]


def no_tick() -> None:
    """Do nothing between events of the workers."""


@contextmanager
def start_workers_early(plugins: Sequence[str], is_needed: bool) -> Iterator[Workers | None]:
    """Start local workers, whose imports take seconds, while there is other work to do; end them in any case."""
    workers = LocalWorkers(plugins) if is_needed else None
    try:
        yield workers
    finally:
        if workers is not None:
            workers.close(at_once=True)


@dataclass
class Execution:
    """Carries out the runs of a study that have not ended."""

    folder: Path
    ledger: Ledger
    planned: Sequence[PlannedRun]
    say: Say
    stop: StopRequest
    num_workers: int | None = 1
    """Runs at a time; None sends all, for a cluster to queue."""
    plugins: Sequence[str] = ()
    precision: str | None = None
    """What `auto` is here, the same for all runs of a study."""
    tick: Tick = no_tick
    """Called several times a second while runs are going."""
    on: str = "local"
    workers: Workers | None = None
    """Workers that were started already."""
    running: dict[str, tuple[PlannedRun, int | None]] = field(default_factory=dict)
    """Runs that were sent, with their attempt: None until they have started."""
    statuses: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)

    def go(self) -> None:
        """Run until everything has ended, or somebody asked to stop."""
        self.ledger.add_runs([make_row(run) for run in self.planned])
        self.statuses = {run: row.status for run, row in self.ledger.results().items()}
        for run in self.planned:  # runs that ended when no study was there to see it
            if run.id not in self.statuses and has_ended(self.folder / RUNS / run.id):
                self._take_in(run, self.ledger.begin(run.id, "found"))
        if self.stop or not self._list_ready():
            return
        workers = self.workers or (RayWorkers(self.plugins) if self.on == "ray" else LocalWorkers(self.plugins))
        is_over = False
        try:
            self._send_runs(workers)
            while self.running and not self.stop:
                self._receive(workers)
                self._send_runs(workers)
            if self.running:
                self.say("stopping: the runs that are going leave a checkpoint")
                workers.stop()
            while self.running:
                self._receive(workers)
            is_over = True
        finally:
            workers.close(at_once=not is_over)

    def _list_ready(self) -> list[PlannedRun]:
        """List the runs that could start now; give up those that never will."""
        ready = []
        for run in self.planned:
            if run.id in self.statuses or run.id in self.running or run.id in self.given_up:
                continue
            parent = self.statuses.get(run.parent) if run.parent is not None else ENDED[0]
            if run.parent in self.given_up or (parent is not None and parent not in ENDED):
                self._give_up(run, "the run it starts from did not come to an end")
            elif parent is not None:
                ready.append(run)
        return ready

    def _send_runs(self, workers: Workers) -> None:
        """Send as many runs as there are free workers."""
        while (self.num_workers is None or len(self.running) < self.num_workers) and not self.stop:
            ready = self._list_ready()
            if not ready:
                return
            run, folder = ready[0], self.folder / RUNS / ready[0].id
            spec = resolve_precision(run.at(self.folder / RUNS), self.precision)
            try:
                update_paths(folder, spec.config)
            except AttnlabError as error:
                self._fail(run, None, str(error))
                continue
            self.running[run.id] = run, None
            workers.send(RunOrder(run.id, str(folder), spec.model_dump(mode="json")))

    def _receive(self, workers: Workers) -> None:
        """Take in what happened to the runs."""
        for event in workers.receive():
            run, attempt = self.running[event.id]
            if event.kind == "started":
                self.running[event.id] = run, self.ledger.begin(event.id, event.detail)
                if self.on == "ray":
                    self.say(f"{run.title}: on node {event.detail}")
            else:
                del self.running[event.id]
                self._end(run, attempt, event)
        self.tick()

    def _end(self, run: PlannedRun, attempt: int | None, event: RunEvent) -> None:
        if event.kind == "finished":
            self._take_in(run, self.ledger.begin(run.id, self.on) if attempt is None else attempt)
        elif event.kind == "interrupted":
            self.ledger.say("interrupted", f"{run.id} was asked to stop")
        elif event.kind == "lost":
            self._lose(run, attempt, event.detail)
        else:
            self._fail(run, attempt, event.detail)

    def _lose(self, run: PlannedRun, attempt: int | None, reason: str) -> None:
        """Start a run again whose node is gone, which is not a failure of the run."""
        self.ledger.say("lost", f"{run.id}: {reason}")
        if self.stop:
            return
        self.losses[run.id] = self.losses.get(run.id, 0) + 1
        if self.losses[run.id] >= MOST_LOSSES:
            self._fail(run, attempt, f"its node was lost {self.losses[run.id]} times ({reason})")
        else:
            self.say(f"{run.title}: its node was lost ({reason}); it starts again")

    def _take_in(self, run: PlannedRun, attempt: int) -> None:
        """Take a run that has ended into the ledger."""
        try:
            delivery = _read_delivery(run.id, attempt, self.folder / RUNS / run.id)
        except AttnlabError as error:
            self._fail(run, attempt, str(error))
            return
        self.ledger.deliver(delivery)
        self.statuses[run.id] = delivery.status
        num_ended = sum(planned.id in self.statuses for planned in self.planned)
        last = delivery.result.get("last")
        figure = "" if last is None else f", {last['primary']} {float(last['figures'][last['primary']]):.6g}"
        self.say(f"{num_ended}/{len(self.planned)} {run.title}: {delivery.status}{figure}")

    def _fail(self, run: PlannedRun, attempt: int | None, reason: str) -> None:
        """Note a failed attempt, and give up a run that has failed too often since the study was started."""
        self.ledger.fail(self.ledger.begin(run.id, self.on) if attempt is None else attempt, reason)
        self.failures[run.id] = self.failures.get(run.id, 0) + 1
        self.say(f"{run.title} failed: {reason} (see {self.folder / RUNS / run.id})")
        if self.failures[run.id] >= MOST_FAILURES:
            self._give_up(run, reason)

    def _give_up(self, run: PlannedRun, reason: str) -> None:
        self.given_up[run.id] = reason
        self.ledger.give_up(run.id, reason)
        self.say(f"{run.title} is given up: {reason}")


def resolve_precision(run: RunSpec, precision: str | None) -> RunSpec:
    """Return a run with what `auto` is in this study."""
    return run if precision is None or run.precision != "auto" else run.replace(precision=precision)


def make_row(run: PlannedRun) -> RunRow:
    """Return a planned run as a row of the ledger."""
    return RunRow(run.id, run.arm, run.size, run.phase, run.seed, {**run.run.config, "parent": run.parent})


def has_ended(folder: Path) -> bool:
    """Tell whether the run in a folder has ended."""
    return (folder / RESULT).exists()


def _read_delivery(run: str, attempt: int, folder: Path) -> Delivery:
    """Read all that a run that has ended leaves."""
    result = read_json(folder / RESULT)
    try:
        ids: Sequence[str] = ()
        scores: dict[str, list[float]] = {}
        clusters: Sequence[str] | None = None
        if result["last"] is not None:
            answers = read_json(folder / "predictions" / f"step-{result['last']['step']:08d}.json")
            ids, scores, clusters = answers["ids"], unspell(answers["per_example"]), answers["clusters"]
        metrics = Metrics.read(folder / "metrics.jsonl") if (folder / "metrics.jsonl").exists() else []
        pairing = read_json(folder / PAIRING)
        lines = [spell(line) for line in metrics]
        return Delivery(run, attempt, result["status"], result, lines, pairing, ids, scores, clusters)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"{folder} does not hold what a run leaves ({type(error).__name__}: {error}); delete it to run it again"
        ) from error
