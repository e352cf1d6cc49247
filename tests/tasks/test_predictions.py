"""Predictions match examples by id or in order; what is missing, unknown or repeated is named."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from attnlab.errors import TaskError
from attnlab.tasks.predictions import read_predictions


@dataclass
class Example:
    id: str
    place: str


EXAMPLES = [Example("a", "data.tsv, row 1"), Example("b", "data.tsv, row 2")]


def write(folder: Path, text: str, name: str = "p.json") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"b": 2, "a": 1}'),
        ("p.jsonl", '{"id": "b", "label": 2}\n{"id": "a", "label": 1}'),
        ("p.json", "[1, 2]"),
    ],
    ids=["object", "rows", "in order"],
)
def test_every_form_gives_one_prediction_per_example(tmp_path: Path, name: str, text: str) -> None:
    matched = read_predictions(write(tmp_path, text, name)).match(EXAMPLES)
    assert {key: prediction.value for key, prediction in matched.items()} == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', r"no prediction for 'b' \(data.tsv, row 2\), one of 1 missing of 2"),
        ('{"a": 1, "b": 2, "c": 3}', "no row of the data has the id 'c'"),
        ('{"a": 1, "a": 2}', "the id 'a' stands at .* row 1 already"),
        ("[1, 2, 3]", "has 3 predictions without ids for 2 rows"),
        ("[]", "has no predictions"),
        ('{"a": 1', "not JSON"),
        ("3", "an object of ids and predictions is needed"),
    ],
)
def test_what_does_not_match_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        read_predictions(write(tmp_path, text)).match(EXAMPLES)
