"""One way of naming: the same rows, documents and hash whatever the file is called and however it is compressed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.data import open_source
from attnlab.errors import DataError

from ..writing import write_file

TEXT = "one two\nthree\n\nfour\nfive\n"


@pytest.mark.parametrize("name", ["a.txt", "b.txt.gz", "c.tokens.xz", "d.raw"])
def test_hash_and_documents_do_not_depend_on_name_or_compression(tmp_path: Path, name: str) -> None:
    plain, other = open_source(write_file(tmp_path, "plain.txt", TEXT)), open_source(write_file(tmp_path, name, TEXT))
    assert other.hash == plain.hash
    assert list(other.documents()) == list(plain.documents()) == ["one two", "three", "four", "five"]
    assert list(other.documents()) == list(other.documents())


def test_other_content_is_another_hash(tmp_path: Path) -> None:
    assert open_source(write_file(tmp_path, "a.txt", "a")).hash != open_source(write_file(tmp_path, "b.txt", "b")).hash


def test_documents_know_the_article_that_a_source_marks(tmp_path: Path) -> None:
    wiki = " = The mill = \n\n It is old . \n = = Wheel = = \n It turns . \n = x = y = \n z \n"
    source = open_source(write_file(tmp_path, "wiki.txt", wiki))
    assert [article for _, article in source.documents_of_articles()] == ["The mill"] * 4 + ["x = y"] * 2
    assert [article for _, article in open_source(write_file(tmp_path, "a.txt", TEXT)).documents_of_articles()] == [
        None
    ] * 4
    rows = [{"title": "A", "text": "one"}, {"title": "A", "text": "two"}, {"title": "", "text": "three"}]
    table = open_source(write_file(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))), column="text")
    assert [article for _, article in table.documents_of_articles()] == ["A", "A", None]


def test_the_column_is_named_or_must_be_meant(tmp_path: Path) -> None:
    rows = [{"question": "a?", "passage": "b.", "label": True}, {"question": "c?", "passage": None}]
    path = write_file(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert list(open_source(path, column="question").documents()) == ["a?", "c?"]
    with pytest.raises(DataError, match=r"has no single column of text; name one of 'question', 'passage'"):
        list(open_source(path).documents())
    with pytest.raises(DataError, match=r"row 2, line 2: column 'passage' is None, but a text is needed"):
        list(open_source(path, column="passage").documents())
    with pytest.raises(DataError, match=r"row 1, line 1: there is no column 'pasage', did you mean 'passage'\?"):
        list(open_source(path, column="pasage").documents())
    with pytest.raises(DataError, match=r"there is no column 'labels', did you mean 'label'\?"):
        open_source(path).need("question", "labels")
