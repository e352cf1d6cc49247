"""`attnlab doctor` says what is there, and what a lack costs."""

import json

import pytest
import torch

import attnlab
from attnlab.cli import doctor, main
from attnlab.kernels import Loops


def test_everything_looked_at_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for subject in (
        "python",
        "torch",
        "C++ compiler",
        "compiled loops",
        "processor",
        "bf16",
        "threads",
        "disk free",
        "kernels",
    ):
        assert subject in out
    assert str(torch.__version__) in out
    for kernel in attnlab.kernels.KERNELS:
        assert kernel in out


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [entry["subject"] for entry in shown] == [seen.subject for seen in doctor.observe()]


def loops(monkeypatch: pytest.MonkeyPatch, available: bool, name: str, reason: str) -> None:
    monkeypatch.setattr(attnlab.kernels, "describe_loops", lambda: Loops(available, name, reason))


def test_the_loops_in_use_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    loops(monkeypatch, True, "prebuilt for x86-64-v3", "this processor has its instructions")
    seen = doctor.observe_loops()
    assert (seen.found, seen.consequence) == ("prebuilt for x86-64-v3", "this processor has its instructions")


def test_missing_loops_say_why_and_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    loops(monkeypatch, False, "none", "no g++ on PATH")
    seen = doctor.observe_loops()
    assert seen.found == "none"
    assert "no g++ on PATH" in seen.consequence
    assert "slower" in seen.consequence
    kernels = doctor.observe_kernels()
    assert "additive" not in kernels.found
    assert "additive and distance cannot run here" in kernels.consequence


def test_a_compiler_is_named_and_a_missing_one_may_not_matter() -> None:
    assert doctor.observe_compiler(["/usr/bin/g++", "-m64"]).found == "/usr/bin/g++ -m64"
    assert "only if" in doctor.observe_compiler(None).consequence


@pytest.mark.parametrize("instruction", ["avx512_bf16", "amx_bf16", "bf16"])
def test_bf16_says_what_training_uses_and_why(instruction: str) -> None:
    seen = doctor.observe_bf16({"avx2": True, instruction: True}, "", True, "bf16 takes 0.50 times as long")
    assert seen.found == instruction
    assert seen.consequence == "training uses bf16, because bf16 takes 0.50 times as long"
    slow = doctor.observe_bf16({"avx2": True}, "", False, "bf16 takes 4.00 times as long")
    assert (slow.found, slow.consequence) == (
        "no instructions", "training uses fp32, because bf16 takes 4.00 times as long",
    )  # fmt: skip


def test_bf16_that_ends_the_process_says_what_to_set() -> None:
    fault = "bf16 products end the process here; set X=Y"
    seen = doctor.observe_bf16({"amx_bf16": True}, fault, False, "torch's bf16 products end the process here")
    assert seen.found == "amx_bf16"
    assert seen.consequence.startswith(f"{fault}; training uses fp32, because ")


def test_unused_processors_are_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert doctor.observe_threads(8).consequence == ""
    assert "OMP_NUM_THREADS" in doctor.observe_threads(2).consequence
