"""Write a run to a checkpoint, and restore a run from one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from ..job.job import Job
from ..job.weights import Say, load_weights
from ..record.checkpoint import Checkpoint, Checkpoints
from ..record.state import State
from ..tuning.state import get_trained_state, hash_frozen_weights
from .optimizer import ModelOptimizer


class Checkpointer:
    """Writes and restores checkpoints: what trains, optimizer, state of the run, and a hash of the frozen weights."""

    def __init__(self, job: Job, folder: Path, say: Say) -> None:
        self.job, self.say = job, say
        self.checkpoints = Checkpoints(folder / "checkpoints", say)
        self.frozen = hash_frozen_weights(job.model)

    def write(self, state: State, optimizer: ModelOptimizer, setup: Mapping[str, Any]) -> None:
        """Write a checkpoint. Random draws are functions of seed and step, so no generator's state is needed."""
        plain = {
            "run": state.record(), **setup, "frozen": self.frozen,
            "seed": self.job.seed, "streams": [stream.identity for stream in self.job.streams],
        }  # fmt: skip
        model = {name: tensor.detach().cpu() for name, tensor in get_trained_state(self.job.model).items()}
        checkpoint = Checkpoint(state.step, model, optimizer.get_state(), plain)
        self.checkpoints.write(checkpoint, best_step=state.best.step if state.best else None)

    def restore(self, checkpoint: Checkpoint, optimizer: ModelOptimizer, setup: Mapping[str, Any]) -> None:
        """Load a checkpoint's weights and optimizer state; raise an error if it is of another model or other data."""
        problem = None
        if checkpoint.state["streams"] != [stream.identity for stream in self.job.streams]:
            problem = "the training data has changed"
        elif checkpoint.state["frozen"] != self.frozen:
            problem = "the frozen weights have changed"
        elif not load_weights(checkpoint, self.job.model):
            problem = "its trained weights are not those of this model"
        if problem is not None:
            raise TrainingError(
                f"cannot resume from the checkpoint at step {checkpoint.step:,}: {problem}; give the same model and "
                "data, or choose another folder"
            )
        optimizer.restore(checkpoint.optimizer)
        self.say(f"resuming from step {checkpoint.step:,} of {self.job.num_steps:,}")
        before = checkpoint.state
        changed = [f"{name} {before.get(name)}, now {now}" for name, now in setup.items() if before.get(name) != now]
        if changed:
            self.say(f"{'; '.join(changed)}: rounding differs, so the result will not be bit-identical")
