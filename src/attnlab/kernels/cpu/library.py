"""A library of compiled loops: its file ends with a checksum, is trusted only if no other user can have written it, and
is loaded from a private copy, so that nothing can change between the verification and the loading, or later.
"""

import ctypes
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from attnlab.checksums import seal, unseal


def read(file: Path) -> bytes:
    """Return the library of a file in a cache.

    Raise PermissionError if another user can have written it, ValueError if it is damaged, and FileNotFoundError.
    """
    folder = _open_folder(file.parent)
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for somebody to write.
        handle = os.open(file.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{file} is not a regular file")
        _check_owner(status, file)
        return unseal(stream.read(), file)


def store(file: Path, body: bytes) -> None:
    """Write a library into a cache, readable by everyone; raise OSError if that is impossible or the folder unsafe."""
    file.parent.parent.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(mode=0o755, exist_ok=True)
    os.close(_open_folder(file.parent))
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(handle, 0o644)
            stream.write(seal(body))
            stream.flush()
            os.fsync(handle)
        Path(temporary).replace(file)
    except OSError:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def load(body: bytes, folders: Iterable[Path | None]) -> ctypes.CDLL:
    """Load a library from memory, or else from a private folder made in the first of `folders` that allows it.

    folders: None is the system's folder for temporary files.
    """
    problems = []
    try:
        return _load_from_memory(body)
    except OSError as error:
        problems.append(f"from memory: {error}")
    for parent in folders:  # some are mounted noexec
        try:
            if parent is not None:
                parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=parent) as folder:
                file = Path(folder) / "loops.so"
                file.write_bytes(body)
                return ctypes.CDLL(str(file))
        except OSError as error:
            problems.append(f"from {parent or 'a temporary folder'}: {error}")
    raise OSError(f"the compiled loops cannot be loaded ({'; '.join(problems)})")


def _load_from_memory(body: bytes) -> ctypes.CDLL:
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no files in memory")
    import fcntl  # absent on Windows, as the function above is

    handle = os.memfd_create("attnlab-loops", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(handle, "wb", closefd=False) as stream:
            stream.write(body)
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        # The handle stays open: the loader knows a library by its path, and a second one must not get the same number.
        return ctypes.CDLL(f"/proc/self/fd/{handle}")
    except OSError:
        os.close(handle)
        raise


def _open_folder(folder: Path) -> int:
    """Open a folder of libraries; raise PermissionError if another user can have put files there."""
    above = folder.parent
    status = above.stat()
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{above} can be written by every user; run 'chmod o-w {above}'")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check_owner(os.fstat(handle), folder)
    except PermissionError:
        os.close(handle)
        raise
    return handle


def _check_owner(status: os.stat_result, path: Path) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(f"{path} belongs to another user (id {status.st_uid})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} can be written by other users; run 'chmod go-w {path}'")
