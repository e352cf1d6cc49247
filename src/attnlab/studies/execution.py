"""A study at work: runs in processes of their own, each result taken into the ledger once, whatever dies on the way."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError
from attnlab.training.record import Metrics, read_json
from attnlab.training.record.plain import spell, unspell
from attnlab.training.stopping import StopRequest

from .ledger import Delivery, Ledger, RunRow
from .plan import PlannedRun
from .server import INTERRUPTED

RUNS = "runs"
MOST_FAILURES = 2
"""Attempts of a run that may fail before it is given up; a process that was killed from outside does not count."""
ENDED = ("finished", "stopped early")
Say = Callable[[str], None]


@dataclass
class Execution:
    """Carries out the runs of a study that have not ended."""

    folder: Path
    ledger: Ledger
    planned: Sequence[PlannedRun]
    workers: int
    say: Say
    stop: StopRequest
    running: dict[str, tuple[PlannedRun, int]] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)

    def go(self) -> bool:
        """Run until everything has ended; tell whether it has."""
        self.ledger.add_runs([row_of(run) for run in self.planned])
        self.collect()
        if not self.ready():
            return not self.stop
        server = start_server()
        try:
            self.feed(server)
            has_asked = False
            while self.running:
                line = server.stdout.readline() if server.stdout else b""
                if not line:
                    raise StudyError("the process that starts runs has died; the same command goes on with the study")
                self.hear(json.loads(line))
                if self.stop and not has_asked:
                    send(server, {"stop": True})
                    has_asked = True
                elif not self.stop:
                    self.feed(server)
        finally:
            if server.stdin:
                server.stdin.close()
            server.wait()
        return not self.stop

    def collect(self) -> None:
        """Take in runs that ended while no study was there to see it."""
        for run in self.planned:
            if run.id not in self.ledger.results() and (self.folder / RUNS / run.id / "result.json").exists():
                self.take_in(run, self.ledger.begin(run.id, "found"))

    def ready(self) -> list[PlannedRun]:
        """List the runs that could start now."""
        results = self.ledger.results()
        found = []
        for run in self.planned:
            if run.id in results or run.id in self.running or run.id in self.given_up:
                continue
            if run.parent is not None:
                parent = results.get(run.parent)
                if run.parent in self.given_up or (parent is not None and parent.status not in ENDED):
                    self.give_up(run, "the run it starts from did not come to an end")
                    continue
                if parent is None:
                    continue
            found.append(run)
        return found

    def feed(self, server: subprocess.Popen[bytes]) -> None:
        """Start as many runs as there are workers."""
        for run in self.ready()[: self.workers - len(self.running)]:
            attempt = self.ledger.begin(run.id, f"{platform.node()}:{os.getpid()}")
            self.running[run.id] = run, attempt
            own = run.at(self.folder / RUNS)
            watching = dataclasses.asdict(own.watching)
            place = str(self.folder / RUNS / run.id)
            order = {"id": run.id, "folder": place, "config": own.config, "watching": watching, "threads": own.threads}
            send(server, order)

    def hear(self, answer: dict[str, Any]) -> None:
        """Take in what the server says."""
        if "status" not in answer:
            return
        run, attempt = self.running.pop(answer["id"])
        if answer["status"] == 0:
            self.take_in(run, attempt)
        elif answer["status"] == INTERRUPTED:
            self.ledger.say("interrupted", f"{run.id} was asked to stop, and left a checkpoint")
        else:
            self.fail(run, attempt, answer["status"])

    def take_in(self, run: PlannedRun, attempt: int) -> None:
        """Take a run that has ended into the ledger."""
        folder = self.folder / RUNS / run.id
        result = read_json(folder / "result.json")
        ids: list[str] = []
        scores: dict[str, list[float]] = {}
        if result["last"] is not None:
            answers = read_json(folder / "predictions" / f"step-{result['last']['step']:08d}.json")
            ids, scores = answers["ids"], answers["per_example"]
        metrics = Metrics.read(folder / "metrics.jsonl") if (folder / "metrics.jsonl").exists() else []
        plain = [spell(line) for line in metrics]
        self.ledger.deliver(Delivery(run.id, attempt, result["status"], result, plain, ids, unspell(scores)))
        num_done = sum(one.id in self.ledger.results() for one in self.planned)
        figure = "" if result["last"] is None else f", {result['last']['primary']} {value_of(result['last']):.6g}"
        self.say(f"{num_done}/{len(self.planned)} {run.title}: {result['status']}{figure}")

    def fail(self, run: PlannedRun, attempt: int, status: int) -> None:
        """Note a failed attempt, and give a run up that has failed too often."""
        log = self.folder / RUNS / run.id / "log.txt"
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
        reason = lines[-1] if lines and status > 0 else f"its process ended with status {status}"
        self.ledger.fail(attempt, reason)
        self.say(f"{run.title} failed: {reason} (see {log})")
        if self.ledger.num_failures(run.id) >= MOST_FAILURES:
            self.give_up(run, reason)

    def give_up(self, run: PlannedRun, reason: str) -> None:
        """Leave a run; it stays in the study as one that failed."""
        self.given_up[run.id] = reason
        self.ledger.say("given up", f"{run.id}: {reason}")


def row_of(run: PlannedRun) -> RunRow:
    """Write a planned run as a row."""
    return RunRow(run.id, run.arm, run.size, run.stage, run.seed, {**run.run.config, "parent": run.parent})


def value_of(evaluation: dict[str, Any]) -> float:
    """Return the figure that decides."""
    return float(evaluation["figures"][evaluation["primary"]])


def start_server() -> subprocess.Popen[bytes]:
    """Start the process that starts runs; threads are each run's own to set."""
    return subprocess.Popen(
        [sys.executable, "-m", "attnlab.studies.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def send(server: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
    """Give the server an order."""
    assert server.stdin is not None
    server.stdin.write((json.dumps(order) + "\n").encode())
    server.stdin.flush()
