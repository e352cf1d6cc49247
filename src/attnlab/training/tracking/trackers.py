"""The trackers of one run in progress. A tracker that fails is dropped with one message, and the run goes on."""

import secrets
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..record.files import read_json, write_json
from ..record.folder import TRACKERS
from . import tensorboard, trackio, wandb  # noqa: F401  (each registers its tracker)
from .tracker import TrackedRun, Tracker, make_trackers

RUN, FAILURES = "run.json", "failures.json"
PROJECT = "attnlab"
"""The project of a run that belongs to no study."""


@dataclass(frozen=True)
class RunTitle:
    """How a run is shown in trackers."""

    project: str
    name: str


class Trackers:
    """Sends figures to all trackers of a run, in this process."""

    def __init__(self, names: Collection[str], folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder / TRACKERS, say
        self.active: dict[str, Tracker] = {}
        self._made = make_trackers(names)

    def start(self, title: RunTitle, config: Mapping[str, Any], step: int) -> None:
        """Start every tracker. step: updates made before this process."""
        if not self._made:
            return
        id = _read(self.folder / RUN).get("id") or secrets.token_hex(4)
        write_json(self.folder / RUN, {"id": id})
        run = TrackedRun(self.folder, id, title.project, title.name, config, step)
        for name, (instance, is_online) in self._made.items():
            self.active[name] = instance
            self._call(name, instance.start, replace(run, folder=self.folder / name, is_online=is_online))

    def log(self, step: int, figures: Mapping[str, Any], prefix: str) -> None:
        """Give every tracker the figures of a step; their names begin with the prefix."""
        named = {f"{prefix}/{name}": value for name, value in figures.items() if isinstance(value, int | float)}
        for name, instance in list(self.active.items()):
            self._call(name, instance.log, step, named)

    def close(self) -> None:
        """Finish every tracker."""
        for name, instance in list(self.active.items()):
            self._call(name, instance.finish)
        self.active.clear()

    def _call(self, name: str, method: Callable[..., None], *values: Any) -> None:
        try:
            # The standard output of a command may be JSON.
            with redirect_stdout(sys.stderr):
                method(*values)
        except Exception as error:
            # A tracker is a program of others, which may raise anything.
            del self.active[name]
            sentence = (
                f"the tracker '{name}' failed ({type(error).__name__}: {error}) and gets no more figures of this run; "
                f"the run goes on, and metrics.jsonl has them all"
            )
            self.say(sentence)
            write_json(self.folder / FAILURES, {**_read(self.folder / FAILURES), name: sentence})


def check_trackers(names: Collection[str]) -> None:
    """Refuse unknown trackers and those without their package, before anything is trained."""
    make_trackers(names)


def read_failures(folder: Path) -> dict[str, str]:
    """Return the messages of trackers that failed in the run of a folder, by name."""
    return _read(folder / TRACKERS / FAILURES)


def _read(file: Path) -> dict[str, Any]:
    return dict(read_json(file)) if file.exists() else {}
