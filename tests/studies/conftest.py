"""A cache of their own for the tests of this room, and runs that are trained in this process."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from attnlab.audits import Audit, audit
from attnlab.audits.in_model import ModelSubject
from attnlab.studies.cost.timing import time_run

from .samples import InProcess


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep token files and timings of this machine out of the user's own cache."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@functools.cache
def looked_for_leaks(mechanism: str, causal: bool) -> Audit:
    """Look for leaks alone, which is what a study goes by; all checks would take seconds each time."""
    return audit(mechanism, causal=causal, checks=["causal leak"])


def audited(mechanism: str, causal: bool, checks: Sequence[str]) -> Audit:
    """Audit each mechanism once for all tests."""
    assert "causal leak" in checks
    return looked_for_leaks(mechanism, causal)


AUDITED: dict[tuple[str, bool], Audit] = {}


def audited_in_model(model: nn.Module, causal: bool, checks: Sequence[str]) -> Audit:
    """Audit models that are alike, by class, size and mechanism, once for all tests."""
    key = ModelSubject(model, causal).title, causal
    if key not in AUDITED:
        AUDITED[key] = audit(model, causal=causal, checks=checks)
    return AUDITED[key]


class TimeInProcess(InProcess):
    """Times runs in this process."""

    def work(self, folder: Path, config: dict[str, Any]) -> bool:
        return time_run(folder, config)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, and look for the leaks of each mechanism and model once for all tests."""
    monkeypatch.setattr("attnlab.studies.run.execution.LocalWorkers", InProcess)
    monkeypatch.setattr("attnlab.studies.cost.timing.LocalWorkers", TimeInProcess)
    monkeypatch.setattr("attnlab.studies.study.audit", audited)
    monkeypatch.setattr("attnlab.studies.plan.installed_arms.audit", audited_in_model)
