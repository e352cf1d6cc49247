"""The execution of a study: workers train its runs, and each result enters the ledger once, even after a kill."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, StudyError
from attnlab.training import RunSpec
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.plain import decode_nonfinite, encode_nonfinite
from attnlab.training.record.files import Seal, read_json
from attnlab.training.record.folder import METRICS, PAIRING, RESULT, WORKLOAD
from attnlab.training.record.metrics import Metrics
from attnlab.training.tracking.trackers import read_failures

from ..ledger.database import ENDED, Delivery, Ledger, ResultRow, RunRow
from ..plan.planning import PlannedRun
from ..plan.search import WORST, Scores
from .cluster import RayWorkers
from .parcel import update_paths
from .trials import score_result
from .workers import LocalWorkers, RunOrder, Workers

RUNS = "runs"
MAX_FAILURES = 2
"""Attempts of a run that may fail before it is given up."""
MAX_LOSSES = 5
"""Times that the node of a run may be lost before that counts as a failure of the run."""
Say = Callable[[str], None]
Tick = Callable[[], None] | None
PlanMore = Callable[[Scores], Sequence[PlannedRun]]


@contextmanager
def start_workers_early(plugins: Sequence[str], is_needed: bool) -> Iterator[Workers | None]:
    """Start local workers, whose imports take seconds, before they are needed; end them in any case."""
    workers = LocalWorkers(plugins) if is_needed else None
    try:
        yield workers
    finally:
        if workers is not None:
            workers.close(at_once=True)


@dataclass
class Execution:
    """Executes the runs of a study that have not ended."""

    folder: Path
    ledger: Ledger
    planned: list[PlannedRun]
    say: Say
    stop: StopRequest
    num_workers: int | None = 1
    """Runs at a time; None sends all to the queue of a cluster."""
    plugins: Sequence[str] = ()
    precision: str | None = None
    """The precision that `auto` stands for, the same for all runs of a study."""
    tick: Tick = None
    """Called several times a second during execution."""
    on: str = "local"
    workers: Workers | None = None
    """Workers that are already started."""
    plan_more: PlanMore | None = None
    """Plans the runs of a study with a search from the scores of its trials; returns those that are new."""
    num_expected: int = 0
    """The number of runs and trials, as far as it is known; 0 if all are planned."""
    scores: dict[str, float] = field(default_factory=dict)
    """Of the trials that have ended or were given up."""
    has_new_scores: bool = False
    running: dict[str, tuple[PlannedRun, int | None]] = field(default_factory=dict)
    """Runs that were sent, with their attempt: None until they have started."""
    statuses: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    failed_trackers: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Run until all runs have ended, or a stop is requested."""
        results = self.ledger.results()
        self.statuses = {run: row.status for run, row in results.items()}
        for run in self.planned:
            if run.id in results:
                self._note_score(run, score_result(results[run.id]))
        self._add_runs(self.planned)
        if self.stop or not self._find_ready():
            return
        workers = self.workers or (RayWorkers(self.plugins) if self.on == "ray" else LocalWorkers(self.plugins))
        is_over = False
        try:
            self._send_runs(workers)
            while self.running and not self.stop:
                self._receive(workers)
                self._send_runs(workers)
            if self.running:
                self.say("stopping: every active run writes a checkpoint")
                workers.stop()
            while self.running:
                self._receive(workers)
            is_over = True
        finally:
            workers.close(at_once=not is_over)

    def _add_runs(self, runs: Sequence[PlannedRun]) -> None:
        """Enter runs into the ledger, with the results of those that ended after the study was killed."""
        self.ledger.add_runs([make_row(run) for run in runs])
        for run in runs:
            if run.obstacle:
                self._give_up(run, run.obstacle)
            elif run.id not in self.statuses and has_ended(self.folder / RUNS / run.id):
                self._record_result(run, self.ledger.begin(run.id, "found"))

    def _find_ready(self) -> list[PlannedRun]:
        """List the runs that can start now, with those that the trials so far allow to plan."""
        while True:
            if self.plan_more is not None and self.has_new_scores:
                self.has_new_scores, known = False, {run.id for run in self.planned}
                new = [run for run in self.plan_more(self.scores) if run.id not in known]
                self.planned += new
                self._add_runs(new)
            ready = self._list_ready()
            if ready or not self.has_new_scores:
                return ready

    def _note_score(self, run: PlannedRun, score: float) -> None:
        if run.is_trial:
            self.scores[run.id] = score
            self.has_new_scores = True

    def _list_ready(self) -> list[PlannedRun]:
        """List the runs that can start now; give up those whose parent has failed."""
        ready = []
        for run in self.planned:
            if run.id in self.statuses or run.id in self.running or run.id in self.given_up:
                continue
            parent = self.statuses.get(run.parent) if run.parent is not None else ENDED[0]
            if run.parent in self.given_up or (parent is not None and parent not in ENDED):
                self._give_up(run, "the run it starts from has not finished")
            elif parent is not None:
                ready.append(run)
        return ready

    def _send_runs(self, workers: Workers) -> None:
        while (self.num_workers is None or len(self.running) < self.num_workers) and not self.stop:
            if not (ready := self._find_ready()):
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
        for event in workers.receive():
            run, attempt = self.running.pop(event.id)
            if event.kind == "started":
                self.running[event.id] = run, self.ledger.begin(event.id, event.detail)
                if self.on == "ray":
                    self.say(f"{run.title}: on node {event.detail}")
            elif event.kind == "finished":
                self._record_result(run, self.ledger.begin(run.id, self.on) if attempt is None else attempt)
            elif event.kind == "interrupted":
                self.ledger.add_event("interrupted", f"{run.id} was asked to stop")
            elif event.kind == "lost":
                self._handle_loss(run, attempt, event.detail)
            else:
                self._fail(run, attempt, event.detail)
        if self.tick is not None:
            self.tick()

    def _handle_loss(self, run: PlannedRun, attempt: int | None, reason: str) -> None:
        """Restart a run whose node was lost, without counting a failure."""
        self.ledger.add_event("lost", f"{run.id}: {reason}")
        if self.stop:
            return
        self.losses[run.id] = self.losses.get(run.id, 0) + 1
        if self.losses[run.id] >= MAX_LOSSES:
            self._fail(run, attempt, f"its node was lost {self.losses[run.id]} times ({reason})")
        else:
            self.say(f"{run.title}: its node was lost ({reason}); it starts again")

    def _record_result(self, run: PlannedRun, attempt: int) -> None:
        try:
            delivery = _read_delivery(run, attempt, self.folder / RUNS / run.id)
        except AttnlabError as error:
            self._fail(run, attempt, str(error))
            return
        self.ledger.deliver(delivery)
        self.statuses[run.id] = delivery.status
        self._note_score(run, score_result(ResultRow(run.id, delivery.status, dict(delivery.result))))
        num_ended = sum(planned.id in self.statuses for planned in self.planned)
        num_runs = max(len(self.planned), self.num_expected)
        last = delivery.result.get("last")
        score = "" if last is None else f", {last['primary']} {float(last['figures'][last['primary']]):.6g}"
        self.say(f"{num_ended}/{num_runs} {run.title}: {delivery.status}{score}")
        for tracker, message in read_failures(self.folder / RUNS / run.id).items():
            if tracker not in self.failed_trackers:  # said once for all runs
                self.failed_trackers.add(tracker)
                self.say(f"{run.title}: {message} (later failures of '{tracker}' are only in the runs' log.txt)")

    def _fail(self, run: PlannedRun, attempt: int | None, reason: str) -> None:
        """Note a failed attempt, and give up a run that has failed too often since the study was started."""
        self.ledger.fail(self.ledger.begin(run.id, self.on) if attempt is None else attempt, reason)
        self.failures[run.id] = self.failures.get(run.id, 0) + 1
        self.say(f"{run.title} failed: {reason} (see {self.folder / RUNS / run.id})")
        if self.failures[run.id] >= MAX_FAILURES:
            self._give_up(run, reason)

    def _give_up(self, run: PlannedRun, reason: str) -> None:
        self.given_up[run.id] = reason
        self._note_score(run, WORST)
        self.ledger.give_up(run.id, reason)
        self.say(f"{run.title} is given up: {reason}")


def resolve_precision(run: RunSpec, precision: str | None) -> RunSpec:
    """Replace the precision `auto` of a run by that of its study."""
    return run if precision is None or run.precision != "auto" else run.replace(precision=precision)


def make_row(run: PlannedRun) -> RunRow:
    """Return a planned run as a row of the ledger."""
    config = {**run.run.config, "parent": run.parent}
    if run.trial is not None:
        config["trial"] = run.trial.record()
    elif run.chosen:
        config["chosen"] = dict(run.chosen)
    return RunRow(run.id, run.arm, run.size, run.phase, run.seed, config)


def has_ended(folder: Path) -> bool:
    """Tell whether the run in a folder has ended."""
    return (folder / RESULT).exists()


def _read_delivery(run: PlannedRun, attempt: int, folder: Path) -> Delivery:
    result = read_json(folder / RESULT)
    try:
        if run.run.figure_at == "best":  # what a study compares is called the last evaluation
            result = {**result, "last": result["best"]}
        seal = Seal(**result.pop(METRICS)) if METRICS in result else None  # older runs have none
        predictions: dict[str, Any] = {"ids": (), "per_example": {}, "clusters": None}
        if result["last"] is not None:
            predictions = read_json(folder / "predictions" / f"step-{result['last']['step']:08d}.json")
        if (folder / WORKLOAD).exists():  # older runs have none
            result["operations"] = float(read_json(folder / WORKLOAD)["operations"])
        metrics = Metrics.read(folder / METRICS, seal) if seal or (folder / METRICS).exists() else []
        return Delivery(
            run.id, attempt, result["status"], result, [encode_nonfinite(line) for line in metrics],
            read_json(folder / PAIRING), predictions["ids"], decode_nonfinite(predictions["per_example"]),
            predictions["clusters"],
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"{folder} does not hold the outputs of a run ({type(error).__name__}: {error}); delete it to run it again"
        ) from error
