"""Weights & Biases: an offline run in the folder of the run; `wandb:online` sends it."""

import importlib
from collections.abc import Mapping
from typing import Any

from .tracker import TrackedRun, Tracker, tracker


@tracker("wandb")
class WeightsAndBiases(Tracker):
    """Logs to W&B: offline unless the user asked for online, whatever WANDB_MODE says."""

    package = "wandb"

    def check(self, is_online: bool) -> None:
        """Accept both."""

    def start(self, run: TrackedRun) -> None:
        """Start a run of its own, beside any that the process may have."""
        wandb = importlib.import_module(self.package)
        run.folder.mkdir(parents=True, exist_ok=True)
        mode = {"mode": "online", "resume": "allow"} if run.is_online else {"mode": "offline"}
        # Only figures and settings are recorded: no output of the terminal, code, git state or system load.
        settings = wandb.Settings(
            silent=True, console="off", symlink=False, disable_git=True, save_code=False, x_disable_stats=True
        )
        self.run: Any = wandb.init(
            project=run.project, name=run.name, id=run.id, dir=str(run.folder), config=dict(run.config),
            reinit="create_new", settings=settings, **mode,
        )  # fmt: skip

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Log figures at a step."""
        self.run.log(dict(figures), step=step)

    def finish(self) -> None:
        """End the run."""
        self.run.finish()
