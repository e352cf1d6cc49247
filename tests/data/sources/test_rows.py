"""Rows of tables, JSON lines and Parquet."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from attnlab.data import open_source
from attnlab.errors import DataError

from ..writing import read_all, write_file


def test_columns_name_those_of_a_table_without_a_header(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.tsv", "gj04\t1\t\tThe cat.\n")
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


def test_the_unit_says_where_a_document_ends(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.txt", "one two\nthree\n\nfour\nfive\n")
    assert list(open_source(path, unit="paragraph").documents()) == ["one two\nthree", "four\nfive"]
    assert list(open_source(path, unit="file").documents()) == ["one two\nthree\n\nfour\nfive"]
    assert open_source(path, unit="file").identity != open_source(path).identity
    with pytest.raises(DataError, match="did you mean 'line'"):
        open_source(path, unit="lines")  # type: ignore[arg-type]


def test_a_csv_reads_what_rfc_4180_allows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,"a ""quoted"" word, and\na line"\n"2",""\n', encoding="utf-8")
    assert read_all(tmp_path / "a.csv") == [
        {"id": "1", "text": 'a "quoted" word, and\na line'},
        {"id": "2", "text": ""},
    ]


def test_quotes_of_a_tsv_are_literal(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('id\ttext\n1\tsay "x\n', encoding="utf-8")
    assert read_all(tmp_path / "a.tsv") == [{"id": "1", "text": 'say "x'}]
