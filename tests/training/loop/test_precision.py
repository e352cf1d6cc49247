"""bf16 where it works and pays, fp32 where not; asked for and not to be had, an error; kept for those who go on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import TrainingError
from attnlab.machine import Bf16Trial, try_bf16
from attnlab.training import build, train
from attnlab.training.loop.precision import choose_precision
from tests.training.runs import Listening, Stopping, last_of, losses_of, quiet, small

CPU = torch.device("cpu")


def machine(monkeypatch: pytest.MonkeyPatch, ratio: float | None) -> None:
    """Let torch's bf16 be so many times faster, or fault."""
    trial = Bf16Trial("end the process", 0.0) if ratio is None else Bf16Trial("", ratio)
    monkeypatch.setattr("attnlab.machine.try_bf16", lambda: trial)
    monkeypatch.setattr("attnlab.training.loop.precision.try_bf16", lambda: trial)


@pytest.mark.parametrize(
    ("asked", "ratio", "name", "said"),
    [
        ("fp32", 9.0, "fp32", "as requested"),
        ("auto", 2.0, "bf16", "torch's bf16 products take 0.50 times as long as those in fp32"),
        ("auto", 1.0, "fp32", "torch's bf16 products take 1.00 times as long"),
        ("auto", None, "fp32", "torch's bf16 products end the process here"),
        ("bf16", 2.0, "bf16", "torch's bf16 products take 0.50 times"),
        ("bf16", 0.25, "bf16", "as requested, although torch's bf16 products take 4.00 times"),
    ],
    ids=["fp32", "auto", "no faster", "faulting", "asked", "asked though slower"],
)
def test_the_choice_and_its_reason_are_said(
    asked: Any, ratio: float | None, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, ratio)
    chosen = choose_precision(asked, CPU)
    assert chosen.name == name
    assert chosen.sentence.startswith(f"matrix products in {name}: {said}")


def test_bf16_that_faults_and_was_asked_for_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, None)
    with pytest.raises(
        TrainingError, match=r"bf16 was requested, but torch's bf16 products end .*; choose fp32 or auto"
    ):
        choose_precision("bf16", CPU)
    with pytest.raises(TrainingError, match="the meta device does not support bf16; choose fp32"):
        choose_precision("bf16", torch.device("meta"))
    assert choose_precision("auto", torch.device("meta")).name == "fp32"


def test_what_was_chosen_is_used_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, None)
    train(build(small(precision="auto")), tmp_path, Stopping([2]))
    assert last_of(tmp_path).state["precision"] == "fp32"
    machine(monkeypatch, 5.0)
    display = Listening()
    train(build(small(precision="auto")), tmp_path, display)
    assert not any("rounding differs" in said for said in display.said)
    train(build(small(precision="fp32")), tmp_path / "fp32", quiet())
    assert losses_of(tmp_path) == losses_of(tmp_path / "fp32")


def test_bf16_stays_near_fp32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if try_bf16().fault:
        pytest.skip("bf16 products fault here")
    machine(monkeypatch, 2.0)
    for name in ("bf16", "fp32"):
        train(build(small(precision=name)), tmp_path / name, quiet())
    assert losses_of(tmp_path / "bf16") != losses_of(tmp_path / "fp32")
    assert losses_of(tmp_path / "bf16") == pytest.approx(losses_of(tmp_path / "fp32"), rel=0.02)
    weights = last_of(tmp_path / "bf16").model
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
