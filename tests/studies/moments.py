"""A study's folder as it looks while runs are going, written by hand: a ledger, a lock and lines of metrics."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from attnlab.studies.answers.study_folder import PLAN
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.run.execution import RUNS, make_row
from attnlab.studies.study import Study
from attnlab.training.record.files import write_json

from .samples import study


class Moment:
    """A study that somebody could be running."""

    def __init__(self, folder: Path, own: Study | None = None, obstacles: dict[str, str] | None = None) -> None:
        self.folder, self.study = folder, own or study()
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.ledger.note_fact("study", self.study.design.name)
        self.ledger.add_event("design", json.dumps(self.study.design.model_dump(mode="json")))
        self.ledger.add_event("started", "{}")
        self.obstacles = obstacles or {}
        self.planned: list[PlannedRun] = []

    def hold(self, pid: int | None = None, host: str | None = None) -> None:
        """Let a process hold the folder: this one, unless another is named."""
        holder = {"pid": os.getpid() if pid is None else pid, "host": host or platform.node(), "started": "now"}
        (self.folder / "lock").write_text(json.dumps(holder), encoding="utf-8")

    def plan(self) -> None:
        """Plan the runs."""
        self.planned = self.study.plan()
        content = {"runs": [run.id for run in self.planned], "obstacles": self.obstacles, "data": {}, "audits": {}}
        self.ledger.add_event(PLAN, json.dumps(content))
        self.ledger.add_runs([make_row(run) for run in self.planned])

    def run(self, arm: str, seed: int) -> PlannedRun:
        """Return a run."""
        return next(run for run in self.planned if (run.arm, run.seed) == (arm, seed))

    def begin(self, arm: str, seed: int, num_steps: int = 100) -> Path:
        """Start a run; return its folder."""
        run = self.run(arm, seed)
        self.ledger.begin(run.id, "here:1")
        folder = self.folder / RUNS / run.id
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "steps.json", [num_steps])
        return folder

    def end(self, arm: str, seed: int, accuracy: float, seconds: float = 8.0) -> None:
        """Let a run end with a figure."""
        run = self.run(arm, seed)
        attempt = self.ledger.begin(run.id, "here:1")
        last = {"step": 4, "primary": "accuracy", "figures": {"accuracy": accuracy}, "note": ""}
        result = {"status": "finished", "step": 4, "num_steps": 4, "last": last, "seconds": seconds}
        self.ledger.deliver(Delivery(run.id, attempt, "finished", result, [], {}, [], {}))


def update(step: int, loss: Any, seconds: float, speed: float = 1000.0) -> str:
    """Write the line of an update."""
    line = {"kind": "train", "step": step, "loss": loss, "lr": 0.1, "tokens_per_second": speed, "seconds": seconds}
    return json.dumps(line) + "\n"


def evaluation(step: int, accuracy: float) -> str:
    """Write the line of an evaluation."""
    return json.dumps({"kind": "evaluation", "step": step, "primary": "accuracy", "accuracy": accuracy}) + "\n"


def write(folder: Path, text: str) -> None:
    """Append to a run's metrics."""
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(text)
