"""`attnlab data` prints what is in a corpus, draws its lengths, and answers a wrong request in one message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.cli import main


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))


def test_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "embedded:squad?articles=4", "--tokenizer", "word"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("embedded:squad?articles=4: squad, sha256 ")
    rows = {line.split("  ")[0]: line.split() for line in shown.splitlines()}
    assert rows["documents"][1] == "20"
    assert rows["tokens"][1] == rows["words"][1]
    assert "unknown tokens" in shown


def test_cleaning_overlap_and_flags_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["embedded:squad?articles=4", "--against", "embedded:squad?articles=1", "--clean", "whitespace"]
    assert main(["data", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "whitespace removed 0 documents and 0 characters" in shown
    assert "overlap, lines" in shown
    assert "LOOK AT THIS" in shown
    assert main(["data", *arguments, "--strict"]) == 1
    assert main(["data", "embedded:squad?articles=4", "--strict"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("Nothing is flagged.")


def test_a_split_is_compared_with_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "embedded:pydoc", "--split", "train", "--against", "split:dev"]) == 0
    assert "of its dev split" in capsys.readouterr().out


def test_json_holds_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "embedded:pydoc", "--split", "dev", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kind"] == "prose"
    assert len(record["hash"]) == 64
    assert record["length_unit"] == "words"


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    target = tmp_path / "lengths.svg"
    assert main(["data", "embedded:pydoc", "--figure", str(target)]) == 0
    drawn = target.read_text(encoding="utf-8")
    assert ">How long the documents of embedded:pydoc are<" in drawn
    assert ">words in a document<" in drawn


def test_a_broken_row_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b', encoding="utf-8")
    assert main(["data", str(path)]) == 2
    assert "a.jsonl, line 2: not JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "For example: attnlab data embedded:pydoc"),
        (["embedded:pydco"], "did you mean 'pydoc'"),
        (["nowhere.txt"], "there is no nowhere.txt"),
        (["embedded:mqar"], "has token ids and no text"),
        (["embedded:boolq"], "has no single column of text; name one of 'question', 'passage'"),
        (["embedded:pydoc", "--clean", "unicod"], "did you mean 'unicode'"),
        (["embedded:pydoc", "--figure", "out.gif"], "gif"),
        (["embedded:pydoc", "--tokenizer", "nowhere/vocab.txt"], "there is no nowhere/vocab.txt"),
    ],
)
def test_a_wrong_request_is_status_2_and_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
    assert "Traceback" not in shown.err
