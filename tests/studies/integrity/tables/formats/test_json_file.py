"""JSON without a table of runs is refused with what is needed."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.formats.json_file import read_json


def test_one_record_and_a_list_in_an_object() -> None:
    assert read_json("r.json", '{"eval": {"acc": 0.5, "notes": null}, "epoch": 3}').header == (
        "eval.acc",
        "eval.notes",
        "epoch",
    )
    assert read_json("r.json", '{"runs": [{"arm": "a", "acc": 1}]}').column("acc") == ["1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "a list of other things than objects"),
        ("[]", "holds no records"),
        ('{"1": "Paris"}', "like predictions without labels; attnlab score TASK"),
        ("{", "begins like JSON and cannot be read as it"),
        ("[" * 100_000, "cannot be read as it"),
        ('{"a": 1}\n3', "a list of other things"),
    ],
)
def test_other_json(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_json("r.json", text)


def test_keys_that_are_whole_numbers_are_seeds(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text('{"method": "ours", "metric": "accuracy", "scores": {"0": 82.5, "7": 82.9}}', encoding="utf-8")
    table = read_table(str(path))
    assert table.has_seeds
    assert [(cell.arm, cell.metric, cell.seed, cell.value) for cell in table.cells] == [
        ("ours", "accuracy", "0", 82.5), ("ours", "accuracy", "7", 82.9),
    ]  # fmt: skip


def test_several_metrics_by_seed(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text('[{"arm": "a", "accuracy": {"0": 0.5, "1": 0.6}, "f1": {"0": 0.7}}]', encoding="utf-8")
    cells = read_table(str(path)).cells
    assert [(cell.metric, cell.seed, cell.value) for cell in cells] == [
        ("accuracy", "0", 0.5), ("f1", "0", 0.7), ("accuracy", "1", 0.6), ("f1", "1", None),
    ]  # fmt: skip


def test_scores_by_class_are_no_seeds(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text('[{"arm": "a", "seed": 3, "accuracy": 0.5, "class_f1": {"0": 0.5, "1": 0.6}}]', encoding="utf-8")
    assert {cell.seed for cell in read_table(str(path)).cells} == {"3"}
