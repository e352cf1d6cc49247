"""A study at work: runs in processes of their own, each result taken into the ledger once, whatever dies on the way."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError
from attnlab.training import RunSpec
from attnlab.training.stopping import StopRequest

from ..ledger.database import ENDED, Ledger, RunRow
from ..plan.planning import PlannedRun
from .cluster import Cluster
from .dispatch import Dispatch
from .run_outputs import delivery_of, has_ended, last_words, readdress
from .server import INTERRUPTED

RUNS = "runs"
MOST_FAILURES = 2
"""Attempts of a run that may fail before it is given up."""
MOST_LOSSES = 5
"""Nodes that a run may lose before that counts as a failure of its own."""
Say = Callable[[str], None]
Server = Dispatch | Cluster
Tick = Callable[[], None]


def no_tick() -> None:
    """Do nothing between looks at the workers."""


@contextmanager
def started_early(plugins: Sequence[str], is_needed: bool) -> Iterator[Server | None]:
    """Start what starts runs, whose imports take seconds, while there is other work to do; nothing of it stays."""
    server = Dispatch(plugins) if is_needed else None
    try:
        yield server
    finally:
        if server is not None:
            server.close(at_once=True)


@dataclass
class Execution:
    """Carries out the runs of a study that have not ended."""

    folder: Path
    ledger: Ledger
    planned: Sequence[PlannedRun]
    say: Say
    stop: StopRequest
    workers: int | None = 1
    """Runs at a time; None sends all, for a cluster to queue."""
    plugins: Sequence[str] = ()
    precision: str | None = None
    """What `auto` is here, the same for all runs of a study."""
    tick: Tick = no_tick
    """Called several times a second while runs are going."""
    on: str = "local"
    server: Server | None = None
    """What starts runs here, where it was started already."""
    running: dict[str, tuple[PlannedRun, int | None]] = field(default_factory=dict)
    """Runs that were sent, with their attempt: None where they wait for a node."""
    statuses: dict[str, str] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)

    def go(self) -> None:
        """Run until everything has ended, or somebody asked to stop."""
        self.ledger.add_runs([row_of(run) for run in self.planned])
        self.statuses = {run: row.status for run, row in self.ledger.results().items()}
        self.collect()
        if self.stop or not self.ready():
            return
        server = self.server or (Cluster(self.plugins) if self.on == "ray" else Dispatch(self.plugins))
        is_over = False
        try:
            self.feed(server)
            while self.running and not self.stop:
                self.attend(server)
                self.feed(server)
            if self.running:
                self.say("stopping: the runs that are going leave a checkpoint")
                server.send({"stop": True})
            while self.running:
                self.attend(server)
            is_over = True
        finally:
            server.close(at_once=not is_over)

    def attend(self, server: Server) -> None:
        """Hear what the workers have done."""
        for answer in server.hear():
            if "node" in answer:
                self.begin(answer["id"], answer["node"])
            elif "lost" in answer:
                self.lose(answer["id"], answer["lost"])
            elif "status" in answer:
                self.hear(answer["id"], answer["status"], answer.get("reason"))
        self.tick()

    def collect(self) -> None:
        """Take in runs that ended while no study was there to see it."""
        for run in self.planned:
            if run.id not in self.statuses and has_ended(self.folder / RUNS / run.id):
                self.take_in(run, self.ledger.begin(run.id, "found"))

    def ready(self) -> list[PlannedRun]:
        """List the runs that could start now."""
        found = []
        for run in self.planned:
            if run.id in self.statuses or run.id in self.running or run.id in self.given_up:
                continue
            parent = self.statuses.get(run.parent) if run.parent is not None else ENDED[0]
            if run.parent in self.given_up or (parent is not None and parent not in ENDED):
                self.give_up(run, "the run it starts from did not come to an end")
            elif parent is not None:
                found.append(run)
        return found

    def feed(self, server: Server) -> None:
        """Start as many runs as there are workers."""
        while self.has_room() and not self.stop and (ready := self.ready()):
            self.start(ready[0], server)

    def has_room(self) -> bool:
        """Tell whether one more run may be started."""
        return self.workers is None or len(self.running) < self.workers

    def start(self, run: PlannedRun, server: Server) -> None:
        """Start a run."""
        folder = self.folder / RUNS / run.id
        own = resolved(run.at(self.folder / RUNS), self.precision)
        attempt = self.ledger.begin(run.id, f"{platform.node()}:{os.getpid()}") if self.on == "local" else None
        try:
            readdress(folder, own)
        except AttnlabError as error:
            self.fail(run, attempt, str(error))
            return
        self.running[run.id] = run, attempt
        server.send({
            "id": run.id, "folder": str(folder), "config": own.model_dump(mode="json"),
        })  # fmt: skip

    def begin(self, id: str, node: str) -> None:
        """Note the node that a run has come to."""
        run, _ = self.running[id]
        self.running[id] = run, self.ledger.begin(id, node)
        self.say(f"{run.title}: on node {node}")

    def lose(self, id: str, reason: str) -> None:
        """Take in that a run's node is gone, which is not the run's doing: it starts again, on another one."""
        run, attempt = self.running.pop(id)
        self.ledger.say("lost", f"{id}: {reason}")
        if self.stop:
            return
        self.losses[id] = self.losses.get(id, 0) + 1
        if self.losses[id] >= MOST_LOSSES:
            self.fail(run, attempt, f"its node was lost {self.losses[id]} times ({reason})")
        else:
            self.say(f"{run.title}: its node was lost ({reason}); it starts again")

    def hear(self, id: str, status: int, reason: str | None = None) -> None:
        """Take in that a worker has ended."""
        run, attempt = self.running.pop(id)
        if status == 0:
            assert attempt is not None
            self.take_in(run, attempt)
        elif status == INTERRUPTED or (self.stop and status == -signal.SIGTERM):
            self.ledger.say("interrupted", f"{run.id} was asked to stop")
        else:
            self.fail(run, attempt, reason or last_words(self.folder / RUNS / run.id, status))

    def take_in(self, run: PlannedRun, attempt: int) -> None:
        """Take a run that has ended into the ledger."""
        try:
            delivery = delivery_of(run.id, attempt, self.folder / RUNS / run.id)
        except AttnlabError as error:
            self.fail(run, attempt, str(error))
            return
        self.ledger.deliver(delivery)
        self.statuses[run.id] = delivery.status
        num_done = sum(one.id in self.statuses for one in self.planned)
        self.say(f"{num_done}/{len(self.planned)} {run.title}: {delivery.status}{figure_in(delivery.result)}")

    def fail(self, run: PlannedRun, attempt: int | None, reason: str) -> None:
        """Note a failed attempt, and give a run up that has failed too often since the study was started."""
        self.ledger.fail(self.ledger.begin(run.id, self.on) if attempt is None else attempt, reason)
        self.failures[run.id] = self.failures.get(run.id, 0) + 1
        self.say(f"{run.title} failed: {reason} (see {self.folder / RUNS / run.id})")
        if self.failures[run.id] >= MOST_FAILURES:
            self.give_up(run, reason)

    def give_up(self, run: PlannedRun, reason: str) -> None:
        """Leave a run; it stays in the study as one that failed."""
        self.given_up[run.id] = reason
        self.ledger.give_up(run.id, reason)
        self.say(f"{run.title} is given up: {reason}")


def resolved(run: RunSpec, precision: str | None) -> RunSpec:
    """Return a run with what `auto` is in this study."""
    return run if precision is None or run.precision != "auto" else run.replace(precision=precision)


def row_of(run: PlannedRun) -> RunRow:
    """Write a planned run as a row."""
    return RunRow(run.id, run.arm, run.size, run.phase, run.seed, {**run.run.config, "parent": run.parent})


def figure_in(result: Any) -> str:
    """Say the figure that decides, where a run has one."""
    last = result.get("last")
    return "" if last is None else f", {last['primary']} {float(last['figures'][last['primary']]):.6g}"
