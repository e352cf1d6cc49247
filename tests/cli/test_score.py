"""`attnlab score` prints the official figures, for people and for programs, and refuses wrong input with status 2."""

import json
from pathlib import Path

import pytest

from attnlab.cli import main

from ..tasks.squad.questions import question, write_squad


@pytest.fixture
def dev(tmp_path: Path) -> str:
    return str(write_squad(tmp_path / "dev.json", [question("Denver Broncos"), question("Köln", key="q2")]))


@pytest.fixture
def answers(tmp_path: Path) -> str:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"q1": "Broncos", "q2": "Köln"}), encoding="utf-8")
    return str(path)


@pytest.fixture
def yes_no(tmp_path: Path) -> tuple[str, str]:
    data, said = tmp_path / "val.jsonl", tmp_path / "said.jsonl"
    rows = [{"question": "is it", "passage": "it is", "idx": i, "label": i > 0} for i in range(4)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said.write_text("".join(json.dumps({"idx": i, "label": "true"}) + "\n" for i in range(4)), encoding="utf-8")
    return str(data), str(said)


def test_squad_is_a_table(dev: str, answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "squad", "--data", dev, "--predictions", answers]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["squad"], ["exact_match", "50.000000"], ["f1", "83.333333"], ["total", "2"]]


def test_json_has_every_digit(dev: str, answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "squad", "--data", dev, "--predictions", answers, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["exact_match"] == 50.0
    assert record["f1"] == pytest.approx(250 / 3, abs=1e-12)


def test_squad_v2_has_its_own_figures(dev: str, answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "squad_v2", "--data", dev, "--predictions", answers, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["HasAns_total"] == 2


@pytest.mark.filterwarnings("default")
def test_missing_answers_are_said(dev: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.json"
    path.write_text('{"q1": "Denver Broncos"}', encoding="utf-8")
    command = ["score", "squad", "--data", dev, "--predictions", str(path)]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "1 of 2 have no prediction and count as wrong" in shown.out
    assert "warning" in shown.err
    assert "few.json has no prediction for 'q2'" in shown.err
    assert main([*command, "--strict"]) == 2


def test_boolq_tells_a_collapse(yes_no: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    data, said = yes_no
    assert main(["score", "boolq", "--data", data, "--predictions", said]) == 0
    shown = capsys.readouterr().out
    assert "accuracy  0.750000" in shown
    assert "COLLAPSED: every prediction is 'true'" in shown
    assert main(["score", "boolq", "--data", data, "--predictions", said, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collapse"]["one_class_only"] is True


def test_glue_takes_the_name_of_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, said = tmp_path / "dev.tsv", tmp_path / "said.tsv"
    data.write_text("sentence\tlabel\nfine\t1\nbad\t0\n", encoding="utf-8")
    said.write_text("index\tprediction\n0\t1\n1\t1\n", encoding="utf-8")
    for words in (["glue", "SST-2"], ["sst2"]):
        assert main(["score", *words, "--data", str(data), "--predictions", str(said)]) == 0
        assert "accuracy  0.500000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["squad"], "--predictions FILE is missing; for example: attnlab score squad"),
        (["glue"], "attnlab score glue needs a task, one of cola, sst2"),
        (["glue", "colaa"], "no task 'colaa', did you mean 'cola'?"),
        (["squad", "more"], "'squad' takes no second name"),
        (["mlm"], "cannot score files of 'mlm'"),
        (["boolk"], "no task 'boolk', did you mean 'boolq'?"),
    ],
)
def test_wrong_requests_are_status_2(
    words: list[str], message: str, dev: str, answers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--data", dev] if words == ["squad"] else ["--data", dev, "--predictions", answers]
    assert main(["score", *words, *files]) == 2
    assert message in capsys.readouterr().err


def test_a_broken_file_is_status_2(dev: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(Path(dev).read_text(encoding="utf-8")[:300], encoding="utf-8")
    assert main(["score", "squad", "--data", str(cut), "--predictions", dev]) == 2
    assert "cut.json" in capsys.readouterr().err
