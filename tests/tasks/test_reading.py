"""Rows are read with their place; a missing column, an empty file and a repeated id are named."""

from pathlib import Path

import pytest

from attnlab.errors import TaskError
from attnlab.tasks.reading import check_unique_ids, find_column, get_source, read_rows

from .test_predictions import Example


def test_rows_come_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text,label\none,1\ntwo,0\n", encoding="utf-8")
    source = get_source(file)
    assert get_source(source) is source
    (place, row), _ = read_rows(source)
    assert "rows.csv" in place
    assert row["text"] == "one"


def test_a_missing_column_is_answered_with_the_closest() -> None:
    assert find_column({"label": 1, "text": ""}, ("sentence", "text"), "row 1") == "text"
    with pytest.raises(TaskError, match=r"row 1: a column 'label' is needed.*labels"):
        find_column({"labels": 1}, ("label",), "row 1")


def test_an_id_may_stand_once() -> None:
    check_unique_ids([Example("a", "row 1"), Example("b", "row 2")])
    with pytest.raises(TaskError, match="row 2: the id 'a' stands at row 1 already"):
        check_unique_ids([Example("a", "row 1"), Example("a", "row 2")])
