"""One process a run: a lock on RUN/lock, which the system frees when its process ends, however it ends."""

from __future__ import annotations

import errno
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from attnlab.errors import TrainingError

from .files import make_folder, write_all
from .trouble import trouble

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
_HELD: set[int] = set()
"""The descriptors this process holds locks by."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder, made if it is not there, for this process alone; another one gets an error at once."""
    if fcntl is None:
        raise TrainingError(
            f"a run's folder cannot be locked on {platform.system()}, and without a lock two processes would ruin each "
            "other's run; train on Linux or macOS, or in WSL on Windows"
        )
    descriptor = _open(folder)
    _take(descriptor, folder)
    try:
        yield
    finally:
        # A child that was forked has closed its copy already, and may neither empty the file nor close another's.
        if descriptor in _HELD:
            _HELD.discard(descriptor)
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)


def _open(folder: Path) -> int:
    try:
        make_folder(folder)
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise trouble("lock the run's folder", folder, error) from error


def _take(descriptor: int, folder: Path) -> None:
    try:
        _lock(descriptor, folder)
        holder = {"pid": os.getpid(), "host": platform.node(), "started": _now()}
        os.ftruncate(descriptor, 0)
        write_all(descriptor, (json.dumps(holder) + "\n").encode())
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            raise trouble("lock the run's folder", folder, error) from error
        raise
    _HELD.add(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise TrainingError(
            f"another process works in {folder}: {_holder(descriptor)}; wait for it, stop it, or choose another folder"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise
        raise TrainingError(
            f"the file system of {folder} has no locks ({error.strerror}), and without one two processes would ruin "
            "each other's run; choose a folder on a local disk"
        ) from error


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']} on {holder['host']}, since {holder['started']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "it has not yet said which it is"


def _now() -> str:
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")


def _let_go() -> None:
    """Close what a forked child inherits: a data worker that outlives its killed parent must not hold the run."""
    for descriptor in _HELD:
        with suppress(OSError):
            os.close(descriptor)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
