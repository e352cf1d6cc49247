"""Errors of `attnlab train` name what was typed: --data and not data.train."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.cli.flags import FLAGS, write_flags
from attnlab.studies.file.overrides import set_value
from attnlab.training import RunSpec

NEW = ("--architecture", "gpt2", "--data", "embedded:pydoc", "--tokenizer", "word:50")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--architecture", "gpt2"), "(--data)"),
        (("--architecture", "gpt2", "--data", "embedded:pydoc"), "(--tokenizer)"),
        ((*NEW, "--lr", "-1"), "--lr: should be greater than or equal to 0, not -1.0"),
        ((*NEW, "--steps", "0"), "--steps: should be greater than or equal to 1, not 0"),
        ((*NEW, "--seed", "-1"), "--seed: should be"),
        ((*NEW, "--tune", "lor"), "--tune: should be 'full', 'head', 'prompt', 'prefix' or 'lora', not 'lor'"),
        ((*NEW, "--segment", "steps=1", "--segment", "steps=0"), "--segment 2, steps: should be"),
        ((*NEW, "--set", "schedule.warmup=-1"), "--set schedule.warmup: should be"),
        ((*NEW, "--start", "x"), "--architecture makes a new model, and --start loads one; give one of them"),
        ((*NEW, "--steps", "1", "--epochs", "1"), "--steps and --epochs both set the length"),
        ((*NEW, "--lr", "1", "--set", "optimizer.lr=1"), "--lr and --set optimizer.lr set the same value"),
    ],
)
def test_an_error_names_the_option(
    options: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "clm", "--out", str(tmp_path / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert not [path for path in FLAGS if "." in path and f"{path}:" in error]


@pytest.mark.parametrize("option", ["--workers", "--threads", "--on"])
def test_an_error_of_a_study_names_the_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quickstart", option, "0"]) == 2
    assert option in capsys.readouterr().err


def test_every_option_is_a_setting() -> None:
    content = {"task": "clm", "start": {"architecture": "gpt2"}, "segments": [{"steps": 1}], "data": {"train": ""}}
    for path in FLAGS:
        set_value(content, path, None, "--set")
    assert {path.partition(".")[0] for path in FLAGS} <= set(RunSpec.model_fields)


@pytest.mark.parametrize("text", ["there is no /a/data.train.txt", "'data.train' is a file", "my-data.train", "a seed"])
def test_other_words_stay(text: str) -> None:
    assert write_flags(text, has_segments=False) == text
