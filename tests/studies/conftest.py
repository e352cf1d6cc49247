"""A cache of their own for the tests of this room, and runs that are trained in this process."""

from __future__ import annotations

import functools

import pytest

from attnlab.audits import Audit, audit

from .samples import InProcess


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep token files and trials of this machine out of the user's own cache."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@functools.cache
def audited(mechanism: str, causal: bool) -> Audit:
    """Look for leaks alone, which is what a study goes by; all checks would take seconds each time."""
    return audit(mechanism, causal=causal, checks=["causal leak"])


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, and look for each mechanism's leaks once for all tests."""
    monkeypatch.setattr("attnlab.studies.execution.Dispatch", InProcess)
    monkeypatch.setattr("attnlab.studies.study.audit", audited)
