"""Stand-ins that train and time runs in this process, since each start of another one costs seconds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from attnlab.audits import Audit, audit
from attnlab.audits.in_model import ModelSubject
from attnlab.errors import AttnlabError
from attnlab.studies.cost.timing import time_run
from attnlab.studies.run.workers import RunEvent, RunOrder
from attnlab.studies.run.workload import note_operations
from attnlab.training import Display, RunSpec, build, train

from .samples import quiet


def train_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, and look for the leaks of each mechanism and model once."""
    monkeypatch.setattr("attnlab.studies.run.execution.LocalWorkers", InProcess)
    monkeypatch.setattr("attnlab.studies.cost.timing.LocalWorkers", TimeInProcess)
    monkeypatch.setattr("attnlab.studies.study.audit", audited)
    monkeypatch.setattr("attnlab.studies.plan.installed_arms.audit", audited_in_model)


class InProcess:
    """Stands in for workers: trains in this process."""

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


class TimeInProcess(InProcess):
    """Times runs in this process."""

    def work(self, folder: Path, config: dict[str, Any]) -> bool:
        return time_run(folder, config)


@functools.cache
def looked_for_leaks(mechanism: str, causal: bool) -> Audit:
    """Look for leaks alone, which is what a study goes by; all checks would take seconds each time."""
    return audit(mechanism, causal=causal, checks=["causal leak"])


def audited(mechanism: str, causal: bool, checks: Sequence[str], progress: Any) -> Audit:
    """Audit each mechanism once for all tests."""
    assert "causal leak" in checks
    return looked_for_leaks(mechanism, causal)


AUDITED: dict[tuple[str, bool], Audit] = {}


def audited_in_model(model: nn.Module, causal: bool, checks: Sequence[str], progress: Any) -> Audit:
    """Audit models that are alike, by class, size and mechanism, once for all tests."""
    key = ModelSubject(model, causal).title, causal
    if key not in AUDITED:
        AUDITED[key] = audit(model, causal=causal, checks=checks)
    return AUDITED[key]
