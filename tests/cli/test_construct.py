"""`attnlab construct` prints what the library finds, says no with status 1, and names what is wrong with a request."""

import json
from pathlib import Path

import pytest

from attnlab import construct
from attnlab.cli import main
from attnlab.cli.construct import NEEDS, SAMPLES, TAKES

KEYS = construct.EXAMPLE_KEYS


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    middle = [sum(column) / 4 for column in zip(*KEYS, strict=True)]
    (tmp_path / "keys.json").write_text(json.dumps([*KEYS, middle]), encoding="utf-8")
    (tmp_path / "keys.csv").write_text("\n".join(",".join(map(str, key)) for key in KEYS), encoding="utf-8")
    (tmp_path / "values.json").write_text("[[1, 0], [0, 1], [1, 1], [0, 0]]", encoding="utf-8")
    (tmp_path / "basis.json").write_text("[[1, 0], [0, 1], [0, 0]]", encoding="utf-8")
    (tmp_path / "other.csv").write_text("0\n0.6\n0.8\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: str) -> int:
    return main(["construct", *words.split()])


EVERY = {
    "select": "select --index 0",
    "select-all": "select-all",
    "average": "average --subset 0,1",
    "strength": "strength --n 10 --head-dim 64 --weight 0.45",
    "extract": "extract --basis basis.json --other other.csv",
    "argmax": "argmax --query 6,1,0",
    "place-key": "place-key --query 4.039,5.326,-0.0944",
}


def test_every_construction_is_tried_below() -> None:
    assert set(EVERY) == set(NEEDS) == set(TAKES)
    assert {need for needs in NEEDS.values() for need in needs} == set(SAMPLES)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("what", EVERY)
def test_a_sentence_a_table_and_a_picture(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{EVERY[what]} --figure {what}.svg") == 0
    shown = capsys.readouterr()
    assert "██" in shown.out or "▒▒" in shown.out
    assert shown.err == f"drawn in {what}.svg\n"
    assert Path(f"{what}.svg").read_text(encoding="utf-8").startswith("<svg")
    assert ("--keys FILE.json takes your own" in shown.out) is ("keys" in TAKES[what])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("what", EVERY)
def test_json_holds_the_query_weights_output_and_error(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{EVERY[what]} --json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["construction"] == what
    assert {"sentence", "query", "weights", "output", "error"} <= set(shown)


def test_it_says_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("select --index 2 --tolerance 0.1 --scale 2 --json") == 0
    shown = json.loads(capsys.readouterr().out)
    found = construct.select(KEYS, 2, tolerance=0.1, scale=2.0)
    assert found.query is not None
    assert shown["query"] == pytest.approx(found.query.tolist())
    assert shown["sentence"] == str(found)


@pytest.mark.usefixtures("files")
def test_the_answer_no_has_status_1_and_the_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("select --keys keys.json --index 4") == 1
    shown = capsys.readouterr().out
    assert shown.startswith("No query selects k4: k4 = 0.25·k0")
    assert "of the others" in shown
    assert run("select --keys keys.json --index 4 --json") == 1
    record = json.loads(capsys.readouterr().out)
    assert record["query"] is None
    assert record["strength"] is None
    assert record["combination"] == pytest.approx([0.25] * 4 + [0])
    assert run("select-all --keys keys.json") == 1
    assert run("place-key --query 1,1,0 --goal select") == 1


@pytest.mark.usefixtures("files")
def test_values_and_csv_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("average --keys keys.csv --values values.json --subset 0,1") == 0
    shown = capsys.readouterr().out
    assert "output: 0.5" in shown
    assert "takes your own" not in shown
    assert run("argmax --keys keys.csv --values values.json --query 6,1,0") == 0
    assert "output: 0, 1" in capsys.readouterr().out


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("selct --index 0", "did you mean 'select'?"),
        ("prove", "there is select, select-all"),
        ("select", "select needs --index; for example: attnlab construct select --index 0"),
        ("strength --n 10", "strength needs --head-dim"),
        ("average --index 0", "--index does not belong to average, which takes --keys"),
        ("strength --n 10 --head-dim 64 --weight 0.45 --keys keys.json", "--keys does not belong to strength"),
        ("strength --n 10 --head-dim 64 --weight 0.5", "only in the limit"),
        ("select --index 9", "there are keys 0 to 3"),
        ("average --subset 0,one", "it has 'one'"),
        ("average --subset 0,0", "key 0 twice"),
        ("argmax --query 1,two,3", "it has '1,two,3'"),
        ("argmax --query 1,2", "query must be 3 numbers"),
        ("select --index 0 --keys keys.txt", "ends in .json or .csv"),
        ("select --index 0 --keys missing.json", "cannot read 'missing.json'"),
        ("select --index 0 --tolerance 0.7", "below 0.5"),
        ("select --index 0 --figure out.pdf", ".svg"),
        ("place-key --query 1,0,0 --goal sum", "goal must be 'average' or 'select'"),
    ],
)
def test_a_wrong_request_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_without_anything_an_example_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["construct"]) == 2
    assert "For example: attnlab construct select --index 0" in capsys.readouterr().err


def test_superposition_points_to_extract(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["construct", "superposition"]) == 2
    assert "extract takes one value out of a sum of several" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--index", "--indices"])
def test_an_index_of_an_average_points_to_subset(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["construct", "average", option, "0"]) == 2
    assert "--subset 0,1 names" in capsys.readouterr().err
