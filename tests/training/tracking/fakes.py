"""Small stand-ins for the packages of trackers, and a tracker that remembers what it was told."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from attnlab.training import TrackedRun, Tracker
from attnlab.training.tracking.tracker import TRACKERS

RUN = TrackedRun(Path("runs/a/trackers/x"), "1a2b", "demo", "pretrain, small, relu, seed 1", {"seed": 1})


class Remembering(Tracker):
    """Remembers every call, over all its instances."""

    calls: list[tuple[Any, ...]]

    def start(self, run: TrackedRun) -> None:
        print("a tracker may print")
        self.calls.append(("start", run))

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        self.calls.append(("log", step, dict(figures)))

    def finish(self) -> None:
        self.calls.append(("finish",))


@contextmanager
def registered(name: str = "memory", kind: type[Remembering] = Remembering) -> Iterator[list[tuple[Any, ...]]]:
    """Register a tracker for a while; yield the list of its calls."""
    kind.calls = []
    TRACKERS[name] = kind
    try:
        yield kind.calls
    finally:
        del TRACKERS[name]


def provide(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    """Let a module of a name be importable, with some functions."""
    module: Any = ModuleType(name)
    module.__spec__ = SimpleNamespace(name=name)
    for key, function in functions.items():
        setattr(module, key, function)
    monkeypatch.setitem(sys.modules, name, module)


class Client:
    """What `init` of W&B and Trackio returns, remembering how it was made."""

    def __init__(self, **given: Any) -> None:
        self.given, self.logged, self.is_finished = given, list[tuple[int, dict[str, float]]](), False

    def log(self, figures: dict[str, float], step: int) -> None:
        self.logged.append((step, figures))

    def finish(self) -> None:
        self.is_finished = True
