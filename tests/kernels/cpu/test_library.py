"""A library file: its checksum, who can have written it, and where it can be loaded from."""

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from attnlab.kernels.cpu import library, variants
from attnlab.machine import find_compiler


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "loops" / "pairs.so"
    library.store(path, b"some library")
    return path


def test_what_is_stored_is_read_by_everyone(file: Path) -> None:
    assert library.read(file) == b"some library"
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(file.parent.iterdir()) == [file]  # no temporary file is left


@pytest.mark.parametrize("length", [0, 1, 31, 32, 43])
def test_a_shortened_file_is_refused(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(ValueError, match="is damaged" if length else "is empty"):
        library.read(file)


@pytest.mark.parametrize(("path", "mode"), [("", 0o664), ("", 0o646), ("..", 0o775), ("..", 0o1777), ("../..", 0o777)])
def test_what_others_can_write_is_refused(file: Path, path: str, mode: int) -> None:
    (file.parent if path == ".." else file.parent.parent if path else file).chmod(mode)
    with pytest.raises(PermissionError, match=r"can be written by .* run 'chmod"):
        library.read(file)
    if path:
        with pytest.raises(PermissionError, match="can be written by"):
            library.store(file, b"")


def test_a_shared_temporary_folder_above_is_safe(file: Path) -> None:
    file.parent.parent.chmod(0o1777)  # nobody can replace another user's folder in it
    assert library.read(file) == b"some library"


@pytest.mark.parametrize("folder", [False, True])
def test_what_belongs_to_another_user_is_refused(file: Path, folder: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    status, another = os.fstat, os.geteuid() + 12345

    def pretend(handle: int) -> os.stat_result:
        real = status(handle)
        is_folder = os.path.isdir(f"/dev/fd/{handle}")
        return os.stat_result([*real[:4], another, *real[5:10]]) if is_folder == folder else real

    monkeypatch.setattr(os, "fstat", pretend)
    with pytest.raises(PermissionError, match=f"belongs to another user \\(id {another}\\)"):
        library.read(file)


def test_links_and_pipes_are_refused(file: Path) -> None:
    target = file.with_name("elsewhere")
    file.rename(target)
    file.symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        library.read(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ValueError, match="is not a regular file"):
        library.read(file)


@pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")
def test_folders_that_do_not_allow_execution_are_survived(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body, reason = variants.compile_loops(find_compiler() or [], [("-O0",)])
    assert body, reason
    first, second = tmp_path / "noexec", tmp_path / "plain"
    load, tried = ctypes.CDLL, []

    def refuse(path: str) -> Any:
        tried.append(path)
        if path.startswith(("/proc", str(first))):
            raise OSError("failed to map segment from shared object")
        return load(path)

    first.mkdir()
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert library.load(body, [first, second]).forward_f32
    assert [Path(path).parents[1] for path in tried[-2:]] == [first, second]
    assert list(second.iterdir()) == []
    with pytest.raises(OSError, match=r"cannot be loaded \(from memory: .*; from .*noexec: failed to map"):
        library.load(body, [first])
