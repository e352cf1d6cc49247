"""Trackio: a database on this machine, for `trackio show`; `trackio:online` sends to a Space or server."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

from attnlab.errors import TrainingError

from .tracker import TrackedRun, Tracker, tracker

SERVERS = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")
"""Environment variables that make Trackio send to a Space or a server."""


@tracker("trackio")
class Trackio(Tracker):
    """Logs to Trackio, which keeps its database in its own folder (TRACKIO_DIR)."""

    package = "trackio"

    def check(self, is_online: bool) -> None:
        """Refuse a difference between what was asked for and what Trackio would do."""
        chosen = [name for name in SERVERS if os.environ.get(name)]
        if chosen and not is_online:
            raise TrainingError(f"{chosen[0]} is set, so figures would be sent; unset it, or ask for 'trackio:online'")
        if is_online and not chosen:
            raise TrainingError(f"set {' or '.join(SERVERS)}, to say where figures are sent to")

    def start(self, run: TrackedRun) -> None:
        """Start the run, or continue it; it is found by its name, which therefore ends with its id."""
        trackio = importlib.import_module(self.package)
        # Imported names only: no system load is recorded, and no dashboard is opened in a notebook.
        self.run: Any = trackio.init(
            project=run.project, name=f"{run.name} {run.id}", config=dict(run.config), resume="allow",
            embed=False, auto_log_gpu=False, auto_log_cpu=False,
        )  # fmt: skip

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Log figures at a step."""
        self.run.log(dict(figures), step=step)

    def finish(self) -> None:
        """Write what is buffered, and end the run."""
        self.run.finish()
