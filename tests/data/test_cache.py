"""Keys depend on content alone, and a folder appears complete or not at all."""

from pathlib import Path

import pytest

from attnlab.data.cache import hash_of, write_folder
from attnlab.errors import DataError


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    assert hash_of({"a": 1, "b": [2]}) == hash_of({"b": [2], "a": 1})
    assert hash_of({"a": 1}) != hash_of({"a": 2})


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with write_folder(target) as temporary:
        (temporary / "index.json").write_text("{}", encoding="utf-8")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["index.json"]
    assert list(target.parent.iterdir()) == [target]


def test_after_an_error_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), write_folder(tmp_path / "folder") as temporary:
        (temporary / "index.json").write_bytes(bytes([1 // 0]))
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_processes_wins(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with write_folder(target) as second:
        with write_folder(target) as first:
            (first / "index.json").write_text("first", encoding="utf-8")
        (second / "index.json").write_text("second", encoding="utf-8")
    assert (target / "index.json").read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*file/folder"), write_folder(tmp_path / "file" / "folder"):
        pass
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "other.txt").touch()
    with pytest.raises(DataError, match=r"cannot write .*taken"), write_folder(taken) as temporary:
        (temporary / "index.json").touch()
