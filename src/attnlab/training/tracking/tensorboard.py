"""TensorBoard: event files in the folder of the run, for `tensorboard --logdir DIR`."""

import json
from collections.abc import Mapping
from typing import Any

from .tracker import TrackedRun, Tracker, tracker


@tracker("tensorboard")
class TensorBoard(Tracker):
    """Writes event files."""

    package = "tensorboard"

    def start(self, run: TrackedRun) -> None:
        """Open a new event file; TensorBoard shows all files of a folder as one run."""
        # Imported here because it needs the optional package.
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(run.folder))
        if not run.step:
            text = json.dumps({"name": run.name, **run.config}, indent=2, ensure_ascii=False)
            self.writer.add_text("config", "\n".join(f"    {line}" for line in text.splitlines()))

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Write figures, at once, so that a killed run loses none."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def finish(self) -> None:
        """Close the file."""
        self.writer.close()
