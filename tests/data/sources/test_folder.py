"""A folder is read as its files, or as those of a split."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.data import open_source
from attnlab.errors import DataError

from ..writing import write_file


def test_a_folder_is_its_files_or_those_of_a_split(tmp_path: Path) -> None:
    for name in ("train-1.txt", "train-0.txt.xz", "valid.txt"):
        write_file(tmp_path, name, name + "\n")
    write_file(tmp_path, "README.md", "not data")
    assert list(open_source(tmp_path, split="train").documents()) == ["train-0.txt.xz", "train-1.txt"]
    assert list(open_source(tmp_path, split="dev").documents()) == ["valid.txt"]
    assert len(list(open_source(tmp_path).rows())) == 3
    with pytest.raises(DataError, match=r"no file in .* belongs to the split 'test'; it has train-0"):
        open_source(tmp_path, split="test")
    with pytest.raises(DataError, match="is one file: omit the split"):
        open_source(tmp_path / "valid.txt", split="dev")


def test_a_folder_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match=r"no file in .* can be read; .* give one of its folders: inner"):
        open_source(tmp_path)
    write_file(tmp_path, "a.txt", "a")
    write_file(tmp_path, "a.jsonl", "{}")
    with pytest.raises(DataError, match=r"several endings \(\.jsonl, \.txt\)"):
        open_source(tmp_path)
