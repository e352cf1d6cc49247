"""A file without a text to evaluate on is split by documents, and a single long line into pieces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.data.sources.holdout import MAX_HELD_OUT, hold_out
from attnlab.errors import DataError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def read(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def write(folder: Path, text: bytes, name: str = "my.txt") -> str:
    (folder / name).write_bytes(text)
    return str(folder / name)


def test_the_last_tenth_is_held_out(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30)]
    for ends in ("\n", "\r\n", "\n\n \n"):
        content = b"\xef\xbb\xbf" + ends.join(lines).encode()
        parts = hold_out(write(tmp_path, content))
        assert read(parts.train) == lines[:27]
        assert read(parts.dev) == lines[27:]
        assert Path(parts.dev).name == "my.dev.txt"
        assert hold_out(str(tmp_path / "my.txt")) == parts
    sentence = parts.describe("my.txt")
    assert sentence.endswith("of its 30 documents the last 3 are held out for evaluation and not trained on")


def test_paragraphs_keep_their_lines(tmp_path: Path) -> None:
    paragraphs = [f"line {number}\nand another" for number in range(30)]
    parts = hold_out(write(tmp_path, "\n\n".join(paragraphs).encode()), unit="paragraph")
    assert [json.loads(row)["text"] for row in read(parts.dev)] == paragraphs[27:]


def test_a_long_text_holds_out_a_bounded_number(tmp_path: Path) -> None:
    parts = hold_out(write(tmp_path, b"a b c\n" * 20_000))
    assert (parts.num_train, parts.num_dev) == (20_000 - MAX_HELD_OUT, MAX_HELD_OUT)


@pytest.mark.parametrize("word", ["word ", "人人生而自由在尊严"])
def test_one_huge_line_is_cut_into_pieces(tmp_path: Path, word: str) -> None:
    parts = hold_out(write(tmp_path, (word * 3000).encode()))
    assert parts.is_cut
    assert "pieces of 600 characters" in parts.describe("my.txt")
    pieces = [*read(parts.train), *read(parts.dev)]
    assert max(map(len, pieces)) <= 600
    assert "".join(pieces).replace(" ", "") == (word * 3000).replace(" ", "")


def test_three_lines_are_enough_and_one_short_line_is_not(tmp_path: Path) -> None:
    parts = hold_out(write(tmp_path, b"one\ntwo\nthree\n"))
    assert (read(parts.train), read(parts.dev)) == (["one", "two"], ["three"])
    assert "the last 1 is held out" in parts.describe("my.txt")
    with pytest.raises(DataError, match="cannot be both trained on and held out"):
        hold_out(write(tmp_path, b"one", "one.txt"))
    with pytest.raises(DataError, match="is empty"):
        hold_out(write(tmp_path, b"\n\n", "empty.txt"))
    with pytest.raises(DataError, match="not UTF-8"):
        hold_out(write(tmp_path, bytes(range(256)), "binary.txt"))


def test_a_table_keeps_its_texts(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps({"body": f"text {number}\nsecond", "n": 1}) for number in range(20))
    parts = hold_out(write(tmp_path, rows.encode(), "t.jsonl"), "body")
    assert json.loads(read(parts.dev)[-1]) == {"text": "text 19\nsecond"}
