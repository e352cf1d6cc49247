"""After each input the fuzzer's folder is what it was before, whatever the input has done to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .place import Place


def replace_by_folder(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "a.txt" / "b").mkdir(parents=True)


def replace_by_file(folder: Path) -> None:
    shutil.rmtree(folder / "deep")
    (folder / "deep").write_text("a file")


def write_with_old_times(folder: Path) -> None:
    """Change a file so that its size and its times are what they were."""
    status = (folder / "a.txt").stat()
    (folder / "a.txt").write_text("other")
    os.utime(folder / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: list[Callable[[Path], object]] = [
    lambda folder: (folder / "new" / "deeper").mkdir(parents=True),
    lambda folder: (folder / "deep" / "b.txt").unlink(),
    lambda folder: (folder / "deep" / "link").symlink_to("b.txt"),
    lambda folder: os.mkfifo(folder / "pipe"),
    shutil.rmtree, replace_by_folder, replace_by_file, write_with_old_times,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_restored(change: Callable[[Path], object], tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    (examples / "deep").mkdir(parents=True)
    (examples / "a.txt").write_text("first")
    (examples / "deep" / "b.txt").write_text("second")
    (examples / "c.sqlite").write_text("third")
    place = Place(examples, tmp_path / "place")
    for _ in range(2):
        change(place.folder)
        place.restore()
        files = {path.relative_to(place.folder): path for path in place.folder.rglob("*")}
        assert {str(name) for name in files} == {"a.txt", "c.sqlite", "deep", "deep/b.txt"} == place.list_files()
        texts = [path.read_text() for name, path in sorted(files.items()) if path.is_file()]
        assert texts == ["first", "third", "second"]
