"""Files that are on the disk when the call returns, and JSON files that are always complete, old or new."""

import errno
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from attnlab.errors import TrainingError

from ..plain import check_plain
from .disk_errors import explain_disk_error, explain_disk_errors

CHUNK = 1 << 23
"""Bytes hashed and written at a time: small enough for the file system's cache, large enough to be fast."""

UNSYNCED = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
"""Errors of network file systems that can sync files but not folders."""


@dataclass(frozen=True)
class Seal:
    """The hash and the size that a file must have."""

    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Compute the seal of a file."""
        with path.open("rb") as file:
            return cls(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def write_through(path: Path, pieces: Iterable[bytes | memoryview]) -> Seal:
    """Write a new file, in place of another of its name, and sync it; return the seal of the bytes to be written."""
    digest, size = hashlib.sha256(), 0
    path.unlink(missing_ok=True)
    descriptor = open_file(path, os.O_WRONLY | os.O_EXCL)
    try:
        for piece in pieces:
            whole = memoryview(piece)
            for start in range(0, len(whole), CHUNK):
                chunk = whole[start : start + CHUNK]
                digest.update(chunk)
                write_all(descriptor, chunk)
            size += len(whole)
        os.fsync(descriptor)
        if hasattr(os, "posix_fadvise"):
            # Without this, reading the file back would test memory instead of the disk.
            with suppress(OSError):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return Seal(digest.hexdigest(), size)


def open_file(path: Path, flags: int) -> int:
    """Open a file to write, and make it if it is missing; a symbolic link is an error, since it may lead anywhere."""
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write every byte; if the disk accepts only some of them, writing the rest raises its error."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and sync them to the disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk, if the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # Windows cannot open folders, and elsewhere a folder may be writable but not readable
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Write plain data so that a reader finds the old file or the new one, never a part; tuples become lists.

    Only one process at a time may write a file, which the run's lock ensures.
    """
    check_plain(content, path.name)
    text = json.dumps(content, indent=2) + "\n"
    temporary = path.with_name(f".{path.name}.writing")
    with explain_disk_errors("write", path):
        make_folder(path.parent)
        try:
            write_through(temporary, [text.encode()])
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink()  # exists only if writing failed
        sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise TrainingError(f"there is no {path}; is {path.parent} the folder of a run?") from error
    except OSError as error:
        raise explain_disk_error("read", path, error) from error
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"{path} is not JSON ({error}); restore it from a copy, or delete it") from error


def parse_json(text: bytes) -> Any:
    """Parse JSON; NaN and Infinity, which Python accepts in it, are errors."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
