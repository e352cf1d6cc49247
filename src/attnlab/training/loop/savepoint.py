"""A run put into a checkpoint, and a checkpoint put back into a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from attnlab.errors import TrainingError

from ..job.job import Job
from ..record import Checkpoint, Checkpoints
from ..record.state import State
from ..tuning import frozen_hash, trained_state
from .optimizer import optimizer_state, restore_optimizer

Say = Callable[[str], None]


class Savepoints:
    """Keeps what trains, what the optimizer remembers, and where the run is; and a hash of what does not train."""

    def __init__(self, job: Job, folder: Path, say: Say) -> None:
        self.job, self.say = job, say
        self.checkpoints = Checkpoints(folder / "checkpoints", say)
        self.frozen = frozen_hash(job.model)

    def keep(self, state: State, optimizer: torch.optim.Optimizer, setup: Mapping[str, Any]) -> None:
        """Write a checkpoint. What is drawn at random is a function of the seed and the step, which are its state."""
        plain = {
            "run": state.record(), **setup, "frozen": self.frozen,
            "seed": self.job.seed, "streams": [stream.identity for stream in self.job.streams],
        }  # fmt: skip
        model = {name: tensor.detach().cpu() for name, tensor in trained_state(self.job.model).items()}
        checkpoint = Checkpoint(state.step, model, optimizer_state(optimizer, self.job.model), plain)
        self.checkpoints.write(checkpoint, best_step=state.best.step if state.best else None)

    def restore(self, kept: Checkpoint, optimizer: torch.optim.Optimizer, setup: Mapping[str, Any]) -> None:
        """Put a checkpoint's weights and optimizer in place; refuse one of another model or other data."""
        self.check(kept)
        own = trained_state(self.job.model)
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(kept.model[name])
        restore_optimizer(optimizer, self.job.model, kept.optimizer)
        self.say(f"going on from step {kept.step:,} of {self.job.num_steps:,}")
        changed = [
            f"{name} {kept.state.get(name)}, now {value}"
            for name, value in setup.items()
            if kept.state.get(name) != value
        ]
        if changed:
            self.say(f"{'; '.join(changed)}: sums round differently, so the end will not be the same to the bit")

    def check(self, kept: Checkpoint) -> None:
        """Refuse a checkpoint that this run could not have written."""
        own = trained_state(self.job.model)
        wrong = None
        if kept.state["streams"] != [stream.identity for stream in self.job.streams]:
            wrong = "the training data is other than that which the run had"
        elif kept.state["frozen"] != self.frozen:
            wrong = "the weights that do not train are other ones than the run had"
        elif {name: tensor.shape for name, tensor in own.items()} != {n: t.shape for n, t in kept.model.items()}:
            wrong = "the weights that train are not those of this model"
        if wrong is not None:
            raise TrainingError(
                f"cannot go on from the checkpoint at step {kept.step:,}: {wrong}; give the same model and data, or "
                "give this run a folder of its own"
            )
