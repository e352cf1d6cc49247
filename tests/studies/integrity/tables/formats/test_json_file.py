"""JSON without a table of runs is refused with what is needed."""

import pytest

from attnlab.errors import RequestError
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
