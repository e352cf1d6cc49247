"""SQuAD's JSON becomes one row per question; damaged JSON is an error that names the row."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from attnlab.data import open_source
from attnlab.data.sources.squad import read_json
from attnlab.errors import DataError

from ..writing import read_all, write_file


def test_squad_is_a_row_a_question_and_a_document_a_paragraph(tmp_path: Path) -> None:
    answers = [{"text": "b", "answer_start": 2}]
    paragraphs = [
        {"context": "a b", "qas": [{"id": 1, "question": "x?", "answers": answers}, {"id": "2", "question": "y?"}]},
        {"context": "a b", "qas": [{"id": "3", "question": "z?", "answers": [], "is_impossible": True}]},
    ]
    path = write_file(tmp_path, "a.json", json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    source = open_source(path)
    rows = list(source.rows())
    assert source.kind == "squad"
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["answers"] == {"text": ["b"], "answer_start": [2]}
    assert [row["is_impossible"] for row in rows] == [False, False, True]
    assert list(source.documents()) == ["a b", "a b"]
    assert [place.rpartition(", ")[2] for place, _ in source.reader.rows()] == ["row 1", "row 2", "row 3"]


def test_a_json_list_is_its_objects(tmp_path: Path) -> None:
    source = open_source(write_file(tmp_path, "a.json", '[{"text": "a"}, {"text": "b"}]'))
    assert (source.kind, list(source.documents())) == ("json", ["a", "b"])


SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "Ada was born in Carrow.",
                    "qas": [
                        {"id": str(n), "question": f"Where {n}?", "answers": [{"text": "Carrow", "answer_start": 16}]}
                        for n in range(5)
                    ],
                }
            ],
        }
    ],
}


def test_a_squad_file_cut_off_while_compressed_names_the_row(tmp_path: Path) -> None:
    questions = SQUAD["data"][0]["paragraphs"][0]["qas"] * 300  # type: ignore[index]
    varied = [{**one, "id": f"{n * 7919 % 65537}"} for n, one in enumerate(questions)]
    content = {"data": [{"title": "T", "paragraphs": [{"context": "Ada was born in Carrow.", "qas": varied}]}]}
    whole = gzip.compress(json.dumps(content).encode())
    (tmp_path / "a.json.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a\.json\.gz is cut off .* in or after row \d+"):
        read_all(tmp_path / "a.json.gz")


@pytest.mark.parametrize("path", [
    "data.0", "data.0.paragraphs", "data.0.paragraphs.0", "data.0.paragraphs.0.qas", "data.0.paragraphs.0.context",
    "data.0.paragraphs.0.qas.0.answers", "data.0.paragraphs.0.qas.0.question",
    "data.0.paragraphs.0.qas.0.answers.0.answer_start",
])  # fmt: skip
@pytest.mark.parametrize("value", [5, 1.5, None, [5], {"a": 1}, float("inf")])
def test_other_types_are_one_error(tmp_path: Path, path: str, value: object) -> None:
    answers = [{"text": "a", "answer_start": 0}]
    paragraph = {"context": "a b", "qas": [{"id": "1", "question": "?", "answers": answers}]}
    content: Any = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    reduce(lambda parent, key: parent[key], parents, content)[last] = value
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(content))
    with suppress(DataError):  # a list of one number is a list, and 1.5 begins at 1
        list(read_json(file))
