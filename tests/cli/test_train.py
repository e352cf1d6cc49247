"""`attnlab train` trains, goes on where it stopped, and answers a wrong request in one message with status 2."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli import main
from attnlab.cli.train import describe_run
from attnlab.training import Display
from attnlab.training.record.files import read_json
from tests.training.tracking.fakes import registered

SIZES = ("n_embd=16", "n_layer=2", "n_head=2", "n_positions=64")
SETTINGS = (
    *(f"config.{size}" for size in SIZES), "task_settings.max_len=24", "data.num_train=20", "data.num_dev=4",
    "precision=fp32",
)  # fmt: skip
MODEL = ["--architecture", "gpt2", "--tokenizer", "word:100", "--data", "embedded:squad?articles=2&people=1"]


def settings(*texts: str) -> list[str]:
    """Return --set for each text."""
    return [word for text in texts for word in ("--set", text)]


CLM = ["train", "clm", *MODEL, "--batch", "4", "--threads", "1", *settings(*SETTINGS)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run of two steps."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert main([*CLM, "--steps", "2", "--out", str(folder)]) == 0
    return folder


def stop_after(step: int, number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send this process a signal after a step."""
    plain = Display.advance

    def advance(display: Display, now: int, *more: Any) -> float:
        if now == step:
            signal.raise_signal(number)
        return plain(display, now, *more)

    monkeypatch.setattr(Display, "advance", advance)


def test_a_run_says_what_it_does_and_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--lr", "1e-2", "--prompt", "Ada", "--sentence", "Ada was born", *settings("evaluate_every=2")]
    assert main([*CLM, *more, "--steps", "3", "--seed", "5", "--out", str(tmp_path / "run")]) == 0
    shown, said = capsys.readouterr()
    assert f"{tmp_path / 'run'}: finished at step 3 of 3; last perplexity" in shown
    assert "parameters: body" in shown
    assert "train: 3 steps of 4 rows; 1 thread; matrix products in fp32: as requested" in said
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert config["seed"] == 5
    assert config["optimizer"]["lr"] == 0.01
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"train", "evaluation", "sample", "sentence"} <= set(kinds)


@pytest.mark.parametrize(
    ("task", "chosen", "is_packed"),
    [
        ("clm", {}, True), ("MLM", {}, True), ("clm", {"data.is_packed": False}, False),
        ("clm", {"data.num_train": 20}, False), ("sst2", {}, False),
    ],
)  # fmt: skip
def test_language_models_train_on_packed_rows_unless_told_otherwise(
    task: str, chosen: dict[str, Any], is_packed: bool
) -> None:
    run = describe_run(task, {"start.architecture": "gpt2", "data.train": "my.txt", **chosen}, {"steps": 1}, [])
    assert run.data.is_packed == is_packed


def test_a_text_of_single_words_trains_a_language_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / "my.txt").write_text("\n".join(["one", "", "two", "three"] * 40), encoding="utf-8")
    model = ["--architecture", "gpt2", "--tokenizer", "word", "--data", str(tmp_path / "my.txt"), "--batch", "2"]
    sizes = settings(*(f"config.{size}" for size in SIZES), "task_settings.max_len=8", "precision=fp32")
    assert main(["train", "clm", *model, *sizes, "--steps", "1", "--out", str(tmp_path / "run")]) == 0
    shown, said = capsys.readouterr()
    assert "It was not evaluated, because it has no held-out data" in shown
    assert "is not evaluated: it names no held-out data (data.dev)" in said
    assert json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["data"]["is_packed"]


def test_a_folder_of_others_is_not_written_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "homework.doc").touch()
    for verb in (["train", "mqar", "--architecture", "gpt2", "--steps", "1"], ["run", "quickstart"]):
        assert main([*verb, "--out", str(tmp_path)]) == 2
        assert "holds other files (homework.doc) and no " in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["homework.doc"]


def test_json_is_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLM, "--steps", "1", "--out", str(tmp_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["step"]) == ("finished", 1)
    stored = read_json(tmp_path / "result.json")
    assert stored.pop("metrics.jsonl")["size"] == (tmp_path / "metrics.jsonl").stat().st_size
    assert record == stored


def test_segments_are_told_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segments = ["--segment", "name=short,steps=1,length=8", "--segment", "name=long,epochs=0.5,batch=3"]
    assert main([*CLM, *segments, "--out", str(tmp_path)]) == 0
    assert "short: 1 steps of 4 rows, long: 2 steps of 3 rows" in capsys.readouterr().err


def test_a_probe_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = settings(
        *(f"config.{size}" for size in SIZES), "task_settings.vocab=32", "data.num_train=8", "data.num_dev=4"
    )
    command = ["train", "mqar", "--architecture", "gpt2", "--steps", "1", *more, *settings("precision=fp32")]
    assert main([*command, "--mechanism", "cosine | softmax", "--out", str(tmp_path)]) == 0
    assert "last accuracy" in capsys.readouterr().out


def test_a_diverged_run_is_a_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*CLM, "--lr", "1e30", "--steps", "4", "--out", str(tmp_path), *settings("schedule.warmup=0")]
    for _ in range(2):
        assert main(command) == 1
        assert "diverged at step 1 of 4: the loss or its gradient is not finite" in capsys.readouterr().out


def test_a_run_that_has_ended_is_told_again(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (finished / "metrics.jsonl").read_bytes()
    assert main(["train", "--out", str(finished)]) == 0
    assert "finished at step 2 of 2" in capsys.readouterr().out
    assert main([*CLM, "--steps", "2", "--out", str(finished)]) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert (finished / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("is_same", [True, False], ids=["the same command", "the folder alone"])
def test_a_stopped_run_goes_on(
    number: signal.Signals, is_same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    command = [*CLM, "--steps", "4", "--out", str(tmp_path), "--track", "memory", *settings("log_every=1")]
    with monkeypatch.context() as patch, registered() as before:
        stop_after(2, number, patch)
        assert main(command) == 130
    shown = capsys.readouterr()
    assert "the same command resumes the run from here" in shown.err
    assert "interrupted at step 2 of 4" in shown.out
    with registered() as after:
        assert main(command if is_same else ["train", "--out", str(tmp_path)]) == 0
    assert "resuming from step 2 of 4" in capsys.readouterr().err
    steps = [[call[1] for call in calls if call[0] == "log" and "train/loss" in call[2]] for calls in (before, after)]
    assert steps == [[1, 2], [3, 4]]


def test_ctrl_c_stops_a_process_and_no_other_takes_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*CLM, "--steps", "1000000", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "attnlab", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    while "step 2/" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    assert main(command) == 2
    refused = capsys.readouterr().err
    assert f"another process works in {tmp_path}: process {process.pid}" in refused
    process.send_signal(signal.SIGINT)
    shown, rest = process.communicate()
    assert process.returncode == 130
    assert "the same command resumes the run from here" in rest
    assert "interrupted at step" in shown
    assert "Traceback" not in rest
    assert not (tmp_path / "result.json").exists()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()]


WRONG: list[tuple[str, list[str], str]] = [
    ("no folder", ["train", "clm"], "--out DIR is missing"),
    ("no model", ["train", "clm", "--data", "x", "--out", "OUT"], "a model is missing; give --architecture TYPE"),
    ("no run", ["train", "--out", "OUT"], "holds no run to resume; to start one, name a task"),
    ("task", ["train", "clmm", *CLM[2:], "--out", "OUT"], "there is no task 'clmm', did you mean 'clm'?"),
    ("mechanism", [*CLM, "--mechanism", "dott | softmax", "--out", "OUT"], "unknown stage 'dott', did you mean 'dot'?"),
    ("both", [*CLM, "--start", "x", "--out", "OUT"], "--architecture makes a new model, and --start loads one"),
    (
        "section",
        [*CLM, *settings("optimiser.lr=1"), "--out", "OUT"],
        "no setting 'optimiser', did you mean 'optimizer'?",
    ),
    (
        "setting",
        [*CLM, *settings("optimizer.beta=1"), "--out", "OUT"],
        "no setting 'optimizer.beta', did you mean 'betas'?",
    ),
    ("bare", [*CLM, *settings("precison=fp32"), "--out", "OUT"], "did you mean 'precision'?"),
    ("no sign", [*CLM, "--set", "seed", "--out", "OUT"], "--set takes name=value"),
    (
        "part",
        [*CLM, *settings("tuning=lora"), "--out", "OUT"],
        "tuning: should be a valid dictionary or instance of Tuning",
    ),
    ("twice", [*CLM, "--lr", "1", *settings("optimizer.lr=2"), "--out", "OUT"], "--lr and --set optimizer.lr set the"),
    ("segment", [*CLM, "--segment", "stps=3", "--out", "OUT"], "no setting '--segment 1, stps', did you mean 'steps'?"),
    (
        "steps",
        [*CLM, "--steps", "2", "--epochs", "1", "--out", "OUT"],
        "--steps and --epochs both set the length of the training",
    ),
    (
        "tune",
        [*CLM, "--tune", "promt", "--out", "OUT"],
        "--tune: should be 'full', 'head', 'prompt', 'prefix' or 'lora'",
    ),
    ("lr", [*CLM, "--lr", "nan", "--out", "OUT"], "--lr: should be a finite number, not nan"),
    ("config", [*CLM, *settings("config.n_layers=1"), "--out", "OUT"], "'n_layers', did you mean 'n_layer'?"),
    ("text", [*CLM, *settings("config.activation_function=foo"), "--out", "OUT"], "no model can be built from this"),
    ("vocabulary", [*CLM, *settings("config.vocab_size=9"), "--out", "OUT"], "they do not belong together"),
    (
        "task setting",
        [*CLM, *settings("task_settings.has_leak_free_perplexity=2"), "--out", "OUT"],
        "has_leak_free_perplexity of the task 'clm' is a bool",
    ),
    ("start", ["train", "clm", "--start", "no/where", *MODEL[2:], "--out", "OUT"], "no model can be loaded from 'no/"),
    ("head", ["train", "mlm", *CLM[2:], "--out", "OUT"], "no model can be built from this config"),
]


@pytest.mark.parametrize(("command", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_wrong_request_is_one_message_and_leaves_nothing(
    command: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main([str(out) if word == "OUT" else word for word in command]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.startswith("attnlab: ")
    assert shown.err.count("attnlab: ") == 1
    assert shown.out == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--lr", "3"], "a resumed run keeps its settings, and --lr was given"),
        (["--seed", "3"], "and --seed was given"),
        (["--mechanism", "cosine | softmax"], "and --mechanism was given"),
        (["--data", "x.txt"], "and --data was given"),
        (["--segment", "steps=3"], "and --segment was given"),
        (["--set", "config.n_layer=3"], "and --set config.n_layer was given"),
    ],
    ids=["lr", "seed", "mechanism", "data", "segment", "config"],
)
def test_going_on_takes_no_other_settings(
    more: list[str], said: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--out", str(finished), *more]) == 2
    assert said in capsys.readouterr().err


def test_going_on_may_take_smaller_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        stop_after(1, signal.SIGINT, patch)
        assert main([*CLM, "--steps", "2", "--out", str(tmp_path)]) == 130
    assert main(["train", "--out", str(tmp_path), *settings("segments.0.micro_batch=2")]) == 0
    assert "micro_batch [None], now [2]" in capsys.readouterr().err


def test_another_run_is_refused_its_folder(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLM, "--steps", "2", "--seed", "9", "--out", str(finished)]) == 2
    assert "holds another run, which differs in seed (9, there 0)" in capsys.readouterr().err


def test_the_folder_of_a_model_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    assert main(["train", "--out", str(tmp_path)]) == 2
    assert "does not describe a run" in capsys.readouterr().err


def test_a_disk_that_is_full_or_read_only_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, said in ((errno.ENOSPC, "the disk is full"), (errno.EROFS, "the file system is read-only")):

        def refuse(*_: Any, number: int = number) -> int:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", refuse)
            assert main([*CLM, "--steps", "1", "--out", str(tmp_path / "run")]) == 2
        assert said in capsys.readouterr().err
    assert main([*CLM, "--steps", "1", "--out", str(tmp_path / "run")]) == 0


def test_a_lack_of_memory_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.tasks.labelled.compute_head_input", full)
        assert main([*CLM, "--steps", "1", "--out", str(tmp_path)]) == 2
    assert "out of memory" in capsys.readouterr().err
    assert main([*CLM, "--steps", "1", "--out", str(tmp_path)]) == 0


def test_a_run_starts_from_the_best_of_another(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "clm", "--start", f"{finished}:best", "--data", MODEL[-1], "--steps", "1", "--threads", "1"]
    more = settings("task_settings.max_len=24", "data.num_train=8", "data.num_dev=4", "precision=fp32")
    assert main([*command, *more, "--out", str(tmp_path)]) == 0
    assert main([*command, *more, "--mechanism", "cosine | softmax", "--out", str(tmp_path / "other")]) == 2
    assert "was trained with 'dot | softmax', not 'cosine | softmax'" in capsys.readouterr().err
