"""Files that are on the disk when the call returns, and small JSON files that are always whole, old or new."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from .plain import check_plain
from .trouble import trouble

CHUNK = 1 << 23
"""Bytes hashed and written at a time: small enough for the cache of the file system, large enough to be quick."""

UNSYNCED = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
"""What network file systems answer that sync files and not folders."""


@dataclass(frozen=True)
class Seal:
    """What a file must be: its hash and its size."""

    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Seal:
        """Read a file once for its seal."""
        with path.open("rb") as file:
            return cls(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def write_through(path: Path, pieces: Iterable[bytes | memoryview]) -> Seal:
    """Write a new file down to the disk, and return the seal of what was meant to be in it."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
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
            # Reading back from memory would prove nothing about the disk.
            with suppress(OSError):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return Seal(digest.hexdigest(), size)


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write every byte; a disk that takes only some of them gives its error on the rest."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they last."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the file system lets a folder be synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        # Windows opens no folder, and elsewhere one may be writable and not readable; nothing more can be done.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Write plain data so that a reader finds the old file or the new one, whatever happens; tuples become lists.

    One process at a time may write a file: the run's lock sees to that.
    """
    check_plain(content, path.name)
    text = json.dumps(content, indent=2) + "\n"
    aside = path.with_name(f".{path.name}.writing")
    try:
        make_folder(path.parent)
        try:
            write_through(aside, [text.encode()])
            aside.replace(path)
        finally:
            # After a rename nothing is there; before one, half a file is.
            with suppress(OSError):
                aside.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise trouble("write", path, error) from error


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse)
    except FileNotFoundError as error:
        raise TrainingError(f"there is no {path}; is {path.parent} the folder of a run?") from error
    except OSError as error:
        raise trouble("read", path, error) from error
    except ValueError as error:
        raise TrainingError(f"{path} is not JSON ({error}); bring it back from a copy, or delete it") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
