"""bf16 where it works and pays, fp32 where not; asked for and not to be had, an error; kept for those who go on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import TrainingError
from attnlab.training import build, precision, train
from attnlab.training.precision import choose_precision, tried
from tests.training.runs import Listening, Stopping, last_of, losses_of, quiet, small

CPU = torch.device("cpu")


def machine(monkeypatch: pytest.MonkeyPatch, ratio: float | None, *, has_tiles: bool = False) -> None:
    """Let torch's bf16 be so many times faster, or fault, and attnlab's own tiles be there or not."""
    monkeypatch.setattr(precision, "tried", lambda: ratio)
    monkeypatch.setattr(precision, "has_tiles", lambda: (has_tiles, "no tiles of attnlab's own"))


@pytest.mark.parametrize(
    ("asked", "ratio", "has_tiles", "name", "by", "said"),
    [
        ("fp32", 9.0, True, "fp32", "torch", "as asked"),
        ("auto", 2.0, True, "bf16", "torch", "torch's bf16 products take 0.50 times as long as those in fp32"),
        ("auto", 1.0, False, "fp32", "torch", "torch's bf16 products take 1.00 times as long"),
        ("auto", 0.25, True, "bf16", "tiles", "by attnlab's tiles, since torch's bf16 products take 4.00 times"),
        ("auto", None, True, "bf16", "tiles", "by attnlab's tiles, since torch's bf16 products end the process here"),
        ("auto", None, False, "fp32", "torch", "torch's bf16 products end the process here; no tiles"),
        ("bf16", 2.0, False, "bf16", "torch", "torch's bf16 products take 0.50 times"),
        ("bf16", 0.25, False, "bf16", "torch", "as asked, though torch's bf16 products take 4.00 times"),
        ("bf16", None, True, "bf16", "tiles", "by attnlab's tiles"),
    ],
    ids=[
        "fp32", "auto", "no faster", "slower with tiles", "faulting with tiles", "faulting", "asked",
        "asked though slower", "asked with tiles",
    ],
)  # fmt: skip
def test_the_choice_and_its_reason_are_said(
    asked: Any, ratio: float | None, has_tiles: bool, name: str, by: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, ratio, has_tiles=has_tiles)
    chosen = choose_precision(asked, CPU)
    assert (chosen.name, chosen.by) == (name, by)
    assert chosen.sentence.startswith(f"matrix products in {name}: {said}")


def test_bf16_that_faults_and_was_asked_for_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, None)
    with pytest.raises(
        TrainingError, match=r"bf16 was asked for, but torch's bf16 products end .*; ask for fp32, or auto"
    ):
        choose_precision("bf16", CPU)
    with pytest.raises(TrainingError, match="the meta device has no bf16 that is known to work; ask for fp32"):
        choose_precision("bf16", torch.device("meta"))
    assert choose_precision("auto", torch.device("meta")).name == "fp32"


@pytest.mark.parametrize(("status", "output", "ratio"), [(0, "2.5\n", 2.5), (-4, "", None)], ids=["works", "faults"])
def test_the_trial_is_made_once_a_machine(
    status: int, output: str, ratio: float | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    calls: list[Any] = []

    def run(command: Any, **_: Any) -> Any:
        calls.append(command)
        return subprocess.CompletedProcess(command, status, output, "")

    monkeypatch.setattr(subprocess, "run", run)
    assert (tried(), tried(), len(calls)) == (ratio, ratio, 1)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SOMETHING_ELSE")
    assert (tried(), len(calls)) == (ratio, 2)
    for file in tmp_path.iterdir():
        file.write_text("{", encoding="utf-8")
    assert (tried(), len(calls)) == (ratio, 3)


def test_what_was_chosen_is_used_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, None)
    train(build(small(precision="auto")), tmp_path, Stopping([2]))
    assert last_of(tmp_path).state["precision"] == "fp32"
    machine(monkeypatch, 5.0)
    display = Listening()
    train(build(small(precision="auto")), tmp_path, display)
    assert not any("round differently" in said for said in display.said)
    train(build(small(precision="fp32")), tmp_path / "fp32", quiet())
    assert losses_of(tmp_path) == losses_of(tmp_path / "fp32")


def test_bf16_stays_near_fp32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = tried()
    if ratio is None:
        pytest.skip("bf16 products fault here")
    machine(monkeypatch, 2.0)
    for name in ("bf16", "fp32"):
        train(build(small(precision=name)), tmp_path / name, quiet())
    assert losses_of(tmp_path / "bf16") != losses_of(tmp_path / "fp32")
    assert losses_of(tmp_path / "bf16") == pytest.approx(losses_of(tmp_path / "fp32"), rel=0.02)
    weights = last_of(tmp_path / "bf16").model
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
