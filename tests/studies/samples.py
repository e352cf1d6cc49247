"""A small study as text and as plain data, with changes by their paths; and a stand-in that trains in this process."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError
from attnlab.studies.file.overrides import set_value
from attnlab.studies.run.workers import RunEvent, RunOrder
from attnlab.studies.run.workload import note_operations
from attnlab.studies.study import Study
from attnlab.training import Display, RunSpec, build, train

STUDY = """\
name = "small"
question = "does a bypass help recall?"
baseline = "dot"
seeds = [1, 2]

[arms]
dot = "dot | softmax"
bypass = "dot | softmax | bypass(alpha=0.5)"
slow = { mechanism = "cosine | softmax", set = { "optimizer.lr" = 1e-3 } }

[sizes.tiny]
architecture = "gpt2"
config = { n_layer = 1, n_embd = 16, n_head = 2, n_positions = 32 }

[data.recall]
train = "embedded:mqar?vocab=32&length=24&pairs=4&examples=80"
dev = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20"

[[phases]]
name = "recall"
task = "mqar"
task_settings = { vocab = 32, length = 24 }
data = "recall"
smallest = 0.02
precision = "fp32"
checkpoint_every = 2

[[phases.segments]]
steps = 4
batch = 8

[phases.optimizer]
lr = 3e-3

[budgets.smoke]
seeds = [1]
"phases.recall.segments.0.steps" = 3

[budgets.paper]
seeds = [1, 2, 3, 4, 5]
phases.recall.segments.0.steps = 9
"""


def content(**changes: Any) -> dict[str, Any]:
    """Return the study as plain data, with changes by their paths (`__` for a dot)."""
    found = tomllib.loads(STUDY)
    del found["budgets"]
    for where, value in changes.items():
        set_value(found, where.replace("__", "."), value, "a test")
    return found


def study(**changes: Any) -> Study:
    """Return the study with changes."""
    return Study.of(content(**changes))


def quiet(message: str) -> None:
    """Say nothing."""


class InProcess:
    """Stands in for workers: trains in this process, since each start of another one costs seconds."""

    def __init__(self, plugins: Sequence[str] = (), server: str = "") -> None:
        self.events: list[RunEvent] = []

    def send(self, order: RunOrder) -> None:
        """Train at once."""
        try:
            is_interrupted = self.work(Path(order.folder), order.config)
            self.events.append(RunEvent(order.id, "interrupted" if is_interrupted else "finished"))
        except AttnlabError as error:
            self.events.append(RunEvent(order.id, "failed", str(error)))

    def work(self, folder: Path, config: dict[str, Any]) -> bool:
        """Train a run; return whether it was interrupted."""
        run = RunSpec.of({**config, "threads": 1})
        job = build(run)
        note_operations(job, folder, quiet)
        return train(job, folder, Display(is_quiet=True)).status == "interrupted"

    def stop(self) -> None:
        """Have nothing to stop."""

    def receive(self) -> list[RunEvent]:
        """Return how the runs that were sent have ended."""
        events, self.events = self.events, []
        return events

    def close(self, *, at_once: bool) -> None:
        """Have nothing to end."""
