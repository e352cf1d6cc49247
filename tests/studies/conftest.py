"""A cache of their own for the tests of this room, and runs that are trained in this process."""

from __future__ import annotations

import pytest

from .in_process import train_here


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep token files and trials of this machine out of the user's own cache."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process, and look for the leaks of each mechanism and model once for all tests."""
    train_here(monkeypatch)
