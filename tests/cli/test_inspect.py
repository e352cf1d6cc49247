"""`attnlab inspect` draws the heads of a run or of a model, and says clearly why it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.training import Segment
from tests.heads.tokenizers import word_pieces
from tests.install.models import build
from tests.training.runs import small, trained


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def test_the_heads_of_a_run_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(small(segments=(Segment(steps=1, batch=4),), mechanism="cosine | softmax"), tmp_path / "run")
    figure = tmp_path / "heads.svg"
    arguments = ["inspect", str(tmp_path / "run"), "--text", "Ada the", "--figure", str(figure)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "weights of the installed mechanism: cosine | softmax" in shown.out
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert main([*arguments, "--layer", "0", "--head", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["layer"], record["head"]) == (0, 1)
    assert len(record["weights"]) == len(record["queries"])
    assert (record["queries"][0], record["queries"][-1]) == ("<START>", "<STOP>")  # as the task writes a line
    assert record["special_tokens"].endswith("as in the lines that its run trained on.")
    assert main([*arguments, "--no-special-tokens", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == record["queries"][1:-1]


def test_the_heads_of_a_model_are_drawn_with_its_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    build("bert").save_pretrained("model")
    word_pieces().save_pretrained("tokenizer")
    arguments = ["inspect", "model", "--text", "the cat", "--figure", "heads.json"]
    assert main(arguments) == 2
    assert "knows no part of the text" in capsys.readouterr().err
    assert main([*arguments, "--tokenizer", "tokenizer"]) == 0
    assert Path("heads.json").exists()
    for wrong, words in (
        (["--arm", "x"], "choose a run"),
        (["--layer", "1"], "give both or neither"),
        (["--figure", "x.pdf"], "ends in one of"),
        (["--tokenizer", "./nothing"], "--tokenizer DIR_OR_NAME"),
        (["--tokenizer", "tokenizer", "--layer", "9", "--head", "0"], "layer must be a number from 0 to 1"),
    ):
        assert main([*arguments, *wrong]) == 2
        assert words in capsys.readouterr().err
