"""One way of naming: the same rows, documents and hash whatever the file is called and however it is compressed."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from attnlab.data import open_source
from attnlab.data.sources.hub import readings
from attnlab.errors import DataError

TEXT = "one two\nthree\n\nfour\nfive\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    content = text.encode()
    path.write_bytes(
        gzip.compress(content) if name.endswith(".gz") else lzma.compress(content) if name.endswith(".xz") else content
    )
    return path


@pytest.mark.parametrize("name", ["a.txt", "b.txt.gz", "c.tokens.xz", "d.raw"])
def test_hash_and_documents_do_not_depend_on_name_or_compression(tmp_path: Path, name: str) -> None:
    plain, other = open_source(write(tmp_path, "plain.txt", TEXT)), open_source(write(tmp_path, name, TEXT))
    assert other.hash == plain.hash
    assert list(other.documents()) == list(plain.documents()) == ["one two", "three", "four", "five"]
    assert list(other.documents()) == list(other.documents())


def test_other_content_is_another_hash(tmp_path: Path) -> None:
    assert open_source(write(tmp_path, "a.txt", "a")).hash != open_source(write(tmp_path, "b.txt", "b")).hash


def test_the_unit_says_where_a_document_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", TEXT)
    assert list(open_source(path, unit="paragraph").documents()) == ["one two\nthree", "four\nfive"]
    assert list(open_source(path, unit="file").documents()) == ["one two\nthree\n\nfour\nfive"]
    assert open_source(path, unit="file").identity != open_source(path).identity
    with pytest.raises(DataError, match="did you mean 'line'"):
        open_source(path, unit="lines")  # type: ignore[arg-type]


def test_documents_know_the_article_that_a_source_marks(tmp_path: Path) -> None:
    wiki = " = The mill = \n\n It is old . \n = = Wheel = = \n It turns . \n = x = y = \n z \n"
    source = open_source(write(tmp_path, "wiki.txt", wiki))
    assert [article for _, article in source.documents_of_articles()] == ["The mill"] * 4 + ["x = y"] * 2
    assert [article for _, article in open_source(write(tmp_path, "a.txt", TEXT)).documents_of_articles()] == [None] * 4
    rows = [{"title": "A", "text": "one"}, {"title": "A", "text": "two"}, {"title": "", "text": "three"}]
    table = open_source(write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))), column="text")
    assert [article for _, article in table.documents_of_articles()] == ["A", "A", None]


def test_a_folder_is_its_files_or_those_of_a_split(tmp_path: Path) -> None:
    for name in ("train-1.txt", "train-0.txt.xz", "valid.txt"):
        write(tmp_path, name, name + "\n")
    write(tmp_path, "README.md", "not data")
    assert list(open_source(tmp_path, split="train").documents()) == ["train-0.txt.xz", "train-1.txt"]
    assert list(open_source(tmp_path, split="dev").documents()) == ["valid.txt"]
    assert len(list(open_source(tmp_path).rows())) == 3
    with pytest.raises(DataError, match=r"no file in .* is of the split 'test'; it has train-0"):
        open_source(tmp_path, split="test")
    with pytest.raises(DataError, match="is one file: leave it out"):
        open_source(tmp_path / "valid.txt", split="dev")


def test_a_folder_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match=r"no file in .* can be read; .* name one of its folders: inner"):
        open_source(tmp_path)
    write(tmp_path, "a.txt", "a")
    write(tmp_path, "a.jsonl", "{}")
    with pytest.raises(DataError, match=r"several endings \(\.jsonl, \.txt\)"):
        open_source(tmp_path)


def test_the_column_is_named_or_must_be_meant(tmp_path: Path) -> None:
    rows = [{"question": "a?", "passage": "b.", "label": True}, {"question": "c?", "passage": None}]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert list(open_source(path, column="question").documents()) == ["a?", "c?"]
    with pytest.raises(DataError, match=r"which column is the text\? Give column= one of 'question', 'passage'"):
        list(open_source(path).documents())
    with pytest.raises(DataError, match=r"row 2, line 2: column 'passage' is None where a text is needed"):
        list(open_source(path, column="passage").documents())
    with pytest.raises(DataError, match=r"row 1, line 1: there is no column 'pasage', did you mean 'passage'\?"):
        list(open_source(path, column="pasage").documents())
    with pytest.raises(DataError, match=r"there is no column 'labels', did you mean 'label'\?"):
        open_source(path).need("question", "labels")
    assert open_source(path).place(1).endswith("a.jsonl, row 2, line 2")


def test_columns_name_those_of_a_table_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "gj04\t1\t\tThe cat.\n")
    source = open_source(path, columns=["source", "label", "mark", "sentence"])
    assert list(source.rows()) == [{"source": "gj04", "label": "1", "mark": "", "sentence": "The cat."}]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parquet_is_read_row_by_row(tmp_path: Path, ending: str) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], "n": [1, 2]}), path)
    if ending:
        path = tmp_path / "a.parquet.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    source = open_source(path)
    assert list(source.rows()) == [{"text": "a", "n": 1}, {"text": "b", "n": 2}]
    assert list(source.documents()) == ["a", "b"]
    assert source.hash == open_source(tmp_path / "a.parquet").hash


def test_squad_is_a_row_a_question_and_a_document_a_paragraph(tmp_path: Path) -> None:
    answers = [{"text": "b", "answer_start": 2}]
    paragraphs = [
        {"context": "a b", "qas": [{"id": 1, "question": "x?", "answers": answers}, {"id": "2", "question": "y?"}]},
        {"context": "a b", "qas": [{"id": "3", "question": "z?", "answers": [], "is_impossible": True}]},
    ]
    path = write(tmp_path, "a.json", json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    source = open_source(path)
    rows = list(source.rows())
    assert source.kind == "squad"
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["answers"] == {"text": ["b"], "answer_start": [2]}
    assert [row["is_impossible"] for row in rows] == [False, False, True]
    assert list(source.documents()) == ["a b", "a b"]
    assert source.place(2).endswith("a.json, row 3")


def test_a_json_list_is_its_objects(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, "a.json", '[{"text": "a"}, {"text": "b"}]'))
    assert (source.kind, list(source.documents())) == ("json", ["a", "b"])


def test_without_a_network_the_hub_says_which_file_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    with pytest.raises(DataError, match=r"cannot fetch hf:squad .* give a file instead: a SQuAD \.json") as caught:
        list(open_source("hf:squad", split="train").rows())
    assert "\n" not in str(caught.value)


def test_a_name_of_the_hub_may_have_an_owner_and_a_config() -> None:
    assert readings("squad") == [("squad", None)]
    assert readings("glue/cola") == [("glue/cola", None), ("glue", "cola")]
    assert readings("nyu-mll/glue/cola") == [("nyu-mll/glue", "cola")]


def test_rows_of_the_hub_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def load(name: str, config: str | None, split: str | None) -> object:
        if (name, config) != ("glue", "cola"):
            raise datasets.exceptions.DatasetNotFoundError(name)
        made = datasets.Dataset.from_dict({"sentence": ["a", "b"], "label": [0, 1]})
        return made if split else datasets.DatasetDict({"train": made, "test": made})

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    source = open_source("hf:glue/cola", split="train")
    assert list(source.rows()) == [{"sentence": "a", "label": 0}, {"sentence": "b", "label": 1}]
    assert list(source.documents()) == ["a", "b"]
    assert len(source.hash) == 64
    with pytest.raises(DataError, match="has several splits; give split= one of train, test"):
        list(open_source("hf:glue/cola").rows())
    with pytest.raises(DataError, match="cannot fetch hf:glue/nothing"):
        list(open_source("hf:glue/nothing", split="train").rows())
