"""Keys depend on content alone, a file is hashed once, and a folder appears complete or not at all."""

import os
from pathlib import Path

import pytest

from attnlab.data import cache
from attnlab.data.cache import hash_of, hash_once, write_folder
from attnlab.errors import DataError


class CountingHash:
    """Hashes files, and counts how often."""

    def __init__(self) -> None:
        self.num_calls = 0
        self.__qualname__ = "count_hashes"

    def __call__(self, path: Path) -> str:
        self.num_calls += 1
        return hash_of(path.read_text(encoding="utf-8"))


@pytest.fixture
def count_hashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CountingHash:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SETTLED", -1)
    return CountingHash()


def test_a_file_is_hashed_once_and_again_after_a_change(tmp_path: Path, count_hashes: CountingHash) -> None:
    file = tmp_path / "text.txt"
    file.write_text("one", encoding="utf-8")
    assert [hash_once(file, count_hashes) for _ in range(3)] == [hash_of("one")] * 3
    assert count_hashes.num_calls == 1
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of a file system has ticks
        file.write_text("two", encoding="utf-8")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert hash_once(file, count_hashes) == hash_of("two")
    assert count_hashes.num_calls == 2


def test_a_file_that_just_changed_is_not_remembered(
    tmp_path: Path, count_hashes: CountingHash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "SETTLED", 10**15)
    file = tmp_path / "text.txt"
    for text in ("one", "two", "two"):
        file.write_text(text, encoding="utf-8")
        assert hash_once(file, count_hashes) == hash_of(text)
    assert count_hashes.num_calls == 3


def test_a_damaged_hash_in_the_cache_is_computed_again(tmp_path: Path, count_hashes: CountingHash) -> None:
    file = tmp_path / "text.txt"
    file.write_text("one", encoding="utf-8")
    hash_once(file, count_hashes)
    (kept,) = (tmp_path / "cache" / "hashes").iterdir()
    kept.write_text("12ab", encoding="utf-8")
    assert hash_once(file, count_hashes) == hash_of("one") == hash_once(file, count_hashes)
    assert count_hashes.num_calls == 2
    with pytest.raises(FileNotFoundError):
        hash_once(tmp_path / "missing", count_hashes)


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
