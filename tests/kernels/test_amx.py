"""Whether there are tiles is told in words, on any machine, and a fault ends a process of its own alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.kernels import amx, native
from attnlab.kernels.native import Compiler


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    amx.has_tiles.cache_clear()
    yield
    amx.has_tiles.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, *, status: int = 0, leave: int = 0) -> None:
    """Let there be a machine with tiles, whose trial ends with a status."""
    library = SimpleNamespace(_name="products.so", request_tiles=lambda: leave)
    monkeypatch.setenv("ATTNLAB_CACHE", str(folder))
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(native, "processor", lambda: f"flags : {' '.join(amx.NEEDED)}")
    monkeypatch.setattr(native, "loaded", lambda loops: (library, Compiler(True, "g++", "")))
    monkeypatch.setattr("subprocess.run", lambda *args, **how: SimpleNamespace(returncode=status))


def test_the_answer_comes_with_a_reason() -> None:
    works, reason = amx.has_tiles()
    assert reason.startswith("bf16 tiles work" if works else "no bf16 tiles: ")


def test_tiles_that_work_are_tried_once_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path)
    assert amx.has_tiles() == (True, "bf16 tiles work: a product was tried and is right")
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_text()) == {"fault": None}
    pretend(monkeypatch, tmp_path, status=-4)
    amx.has_tiles.cache_clear()
    assert amx.has_tiles()[0]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (-4, "ended its process"),
        (3, "does not give leave"),
        (4, "came out wrong"),
        (1, "failed (exit status 1)"),
    ],
)
def test_a_trial_that_fails_says_how(status: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, status=status)
    works, reason = amx.has_tiles()
    assert not works
    assert said in reason


def test_a_process_may_be_refused_what_another_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, leave=1)
    assert amx.has_tiles() == (False, "no bf16 tiles: the system does not give leave to use them")


@pytest.mark.parametrize("lacking", amx.NEEDED)
def test_flags_that_are_missing_are_named(lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path)
    flags = [name for name in amx.NEEDED if name != lacking]
    monkeypatch.setattr(native, "processor", lambda: f"flags : {' '.join(flags)}")
    assert amx.has_tiles() == (False, f"no bf16 tiles: the processor has no {lacking}")


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "aarch64")])
def test_other_platforms_are_named(system: str, machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path)
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    works, reason = amx.has_tiles()
    assert not works
    assert f"this is {system} on {machine}" in reason


def test_no_compiler_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path)
    monkeypatch.setattr(native, "loaded", lambda loops: (None, Compiler(False, None, "no C++ compiler found")))
    assert amx.has_tiles() == (False, "no bf16 tiles: no C++ compiler found")


def test_asking_never_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*args: Any, **how: Any) -> Any:
        raise PermissionError("no processes here")

    pretend(monkeypatch, tmp_path)
    monkeypatch.setattr("subprocess.run", broken)
    works, reason = amx.has_tiles()
    assert not works
    assert "PermissionError: no processes here" in reason


def test_a_trial_in_a_process_that_cannot_load_the_loops_fails() -> None:
    assert amx.tried("/nowhere/products.so") is not None
