"""Every way a file can be broken is one clear error that names the file and where in it to look."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.data import open_source
from attnlab.data.sources import files
from attnlab.errors import DataError, RequestError

from ..writing import read_all

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
LINES = "".join(json.dumps({"text": f"line {n} " + "x" * 40}) + "\n" for n in range(2000))


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_data_that_is_cut_off_names_the_last_whole_line(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.jsonl{ending}"
    # Noise, so that half of the compressed bytes hold about half of the lines.
    noise = "".join(json.dumps({"text": f"{n * 7919 % 10007} {n * n % 65537}"}) + "\n" for n in range(5000))
    whole = compress(noise.encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"a\.jsonl\{ending} is cut off .* after line \d+"):
        read_all(path)
    with pytest.raises(DataError, match="is cut off"):
        open_source(path).hash  # noqa: B018


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_what_is_not_compressed_at_all_is_said_to_be_damaged(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.txt{ending}"
    path.write_text("plain", encoding="utf-8")
    with pytest.raises(DataError, match="is damaged after line 0"):
        read_all(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", LINES[:-20], r"a\.jsonl, line 2000: not JSON: .* this one ends in "),
        ("a.jsonl", '{"text": 1}\n[1]\n', r"a\.jsonl, line 2: needs an object"),
        (
            "a.json",
            json.dumps(SQUAD)[:-80],
            r"a\.json, line 1, column \d+, in or after row 4: not JSON, the file ends too early",
        ),
        ("a.json", '{"no": 1}', r"needs SQuAD's .* not an object of 'no'"),
        ("a.json", "[1]", r"a\.json, row 1: needs an object, not 1"),
        ("a.json", '{"data": [{"title": "x"}]}', r"article 1: needs 'title' and 'paragraphs'"),
        ("a.json", '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": 1}]}]}]}', r"row 1: a question needs"),
        ("a.csv", 'id,text\n1,"never closed\n2,b\n', r"a\.csv, row 1, which begins at line 2: a stray quote"),
        ("a.csv", 'id,text\n1,ok\n2,a"b\n', r"a\.csv, row 2, which begins at line 3: a stray quote"),
        ("a.csv", 'id,text\n1,"two\nlines"\n2,"a"b\n', r"row 2, which begins at line 4: a stray quote"),
        ("a.csv", "id,text\n1,b,c\n", r"a\.csv, row 1, line 2: 3 fields, but 2 are needed \(id, text\)"),
        ("a.tsv", "id\ttext\n1\n", r"a\.tsv, row 1, line 2: 1 fields, but 2 are needed"),
        ("a.tsv", "a\ta\n1\t2\n", r"the header names 'a' more than once"),
        ("a.txt", "", r"a\.txt is empty: it has no rows"),
        ("a.txt", " \n\n", r"a\.txt is empty"),
        ("a.json", "", r"a\.json is empty"),
        ("a.csv", "id,text\n", r"a\.csv is empty"),
        ("a.parquet", "not parquet", r"a\.parquet is not valid Parquet"),
        ("a.docx", "x", r"cannot read '\.docx'; readable files end in \.txt"),
    ],
)
def test_a_broken_file_is_one_error_that_says_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_all(tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.json"])
def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path, name: str) -> None:
    content = {"a.jsonl": b'{"text": "a"}\n{"text": "b"}\n', "a.csv": b"id,text\n1,a\n", "a.json": b'[{"a":\n"b"}]'}
    (tmp_path / name).write_bytes(content.get(name, b"one\ntwo\n") + b"caf\xe9\n")
    number = {"a.txt": 3, "a.jsonl": 3, "a.csv": 3, "a.json": 2}[name]
    with pytest.raises(DataError, match=rf"{name}, line {number}: byte \d+ of the line is 0xe9, which is not UTF-8"):
        read_all(tmp_path / name)


def test_a_missing_file_names_the_closest(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    with pytest.raises(
        DataError, match=r"there is no .*other\.jsonl; .* holds .*; give the path of a file or a folder"
    ):
        open_source(tmp_path / "other.jsonl")
    with pytest.raises(DataError, match=r"there is no .*trian\.jsonl, did you mean 'train\.jsonl'\?"):
        open_source(tmp_path / "trian.jsonl")
    with pytest.raises(DataError, match="give the path of a file or a folder"):
        open_source(tmp_path / "nowhere" / "x.txt")


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffa\u2028b\x85c\x0cd\r\ne\n".encode())
    assert [row["text"] for row in read_all(tmp_path / "a.txt")] == ["a\u2028b\x85c\x0cd", "e"]


def test_a_compressed_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MIN_LIMIT", 1 << 16)
    for ending, compress in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"bomb.txt{ending}"
        path.write_bytes(compress(b"0" * (1 << 22)))
        with pytest.raises(DataError, match="decompresses to more than"):
            list(files.read_lines(path))
        path.write_bytes(compress(b"text\n" * 1000))
        assert len(list(files.read_lines(path))) == 1000


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(RequestError, match="is a pipe"):
        files.hash_content(tmp_path / "pipe.txt")
