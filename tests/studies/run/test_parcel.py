"""Folders as bytes: the whole of one, or nothing, and nothing outside of its place."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.run.parcel import CONTENT, pack, unpack


def folder_at(place: Path, text: str) -> Path:
    (place / "checkpoints").mkdir(parents=True)
    (place / "checkpoints" / "one").write_text(text, encoding="utf-8")
    (place / "lock").touch()
    return place


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    here, there = folder_at(tmp_path / "here", "new"), folder_at(tmp_path / "there" / "run", "old")
    (there / "left").touch()
    unpack(pack(here), there)
    assert [file.name for file in sorted(there.rglob("*"))] == ["checkpoints", "one"]
    assert (there / "checkpoints" / "one").read_text(encoding="utf-8") == "new"
    assert [file.name for file in there.parent.iterdir()] == ["run"]


def test_a_file_and_what_a_folder_links_to_come_along(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("weights", encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").symlink_to(tmp_path / "blob")
    unpack(pack(tmp_path / "blob"), tmp_path / "file")
    unpack(pack(tmp_path / "model"), tmp_path / "copy")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "weights"
    assert not (tmp_path / "copy" / "weights").is_symlink()
    assert (tmp_path / "copy" / "weights").read_text(encoding="utf-8") == "weights"


@pytest.mark.parametrize("name", ["../outside", f"{CONTENT}/../../outside", "/outside"])
def test_what_would_leave_its_place_does_not(tmp_path: Path, name: str) -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    place = folder_at(tmp_path / "runs" / "run", "old")
    with pytest.raises(StudyError, match="is not what was packed"):
        unpack(written.getvalue(), place)
    assert (place / "checkpoints" / "one").read_text(encoding="utf-8") == "old"
    assert not (tmp_path / "outside").exists()


def test_bytes_that_are_no_parcel_leave_what_is_there(tmp_path: Path) -> None:
    place = folder_at(tmp_path / "run", "old")
    with pytest.raises(StudyError, match="is not what was packed"):
        unpack(b"nonsense", place)
    assert (place / "checkpoints" / "one").exists()
