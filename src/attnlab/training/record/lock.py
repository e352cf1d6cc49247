"""The lock of a run's folder, RUN/lock, so that one process trains it. The system frees it when the process ends."""

import errno
import json
import os
import platform
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from attnlab.errors import AttnlabError, TrainingError
from attnlab.inputs import parse_json
from attnlab.ownership import describe_risk

from .disk_errors import explain_disk_error
from .files import make_folder, open_file, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
_HELD: set[int] = set()
"""The file descriptors of the locks of this process."""


def refuse_foreign_files(folder: Path, own: Collection[str], kind: str) -> None:
    """Refuse to write a run or a study among files of others.

    own: names by which an earlier run or study is recognised, beside its lock. Hidden files do not count.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError:
        return  # opening it reports the error
    foreign = [name for name in names if not name.startswith(".")]
    if foreign and {LOCK, *own}.isdisjoint(names):
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise TrainingError(
            f"{folder} holds other files ({foreign[0]}{more}) and no {kind}; give a new or empty folder"
        )


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make a run's folder if it is missing and lock it; raise an error if another process holds the lock.

    A folder that was made here is removed if the run is refused before it has written anything.
    """
    if fcntl is None:
        raise TrainingError(
            f"a run's folder cannot be locked on {platform.system()}, and without a lock two processes would overwrite "
            "each other's files; train on Linux or macOS, or in WSL on Windows"
        )
    is_new = not os.path.lexists(folder)  # Path.exists raises an error if the name is too long
    descriptor = _open_locked(folder)
    try:
        yield
    except AttnlabError:
        if is_new and descriptor in _HELD:
            _remove_unused(folder)
        raise
    finally:
        # A forked child has already closed its copy (see `_release_in_child`) and must not touch the file.
        if descriptor in _HELD:
            _HELD.discard(descriptor)
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove the folder of a run that was refused before it wrote anything."""
    written = [file for file in folder.rglob("*") if file.name != LOCK and not file.is_dir() and file.lstat().st_size]
    if not written:
        shutil.rmtree(folder, ignore_errors=True)


def _open_locked(folder: Path) -> int:
    descriptor = None
    for path in (folder, folder / LOCK):
        if risk := describe_risk(path):
            raise TrainingError(risk)
    try:
        make_folder(folder)
        descriptor = open_file(folder / LOCK, os.O_RDWR)
        _lock(descriptor, folder)
        started = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        holder = {"pid": os.getpid(), "host": platform.node(), "started": started}
        os.ftruncate(descriptor, 0)
        write_all(descriptor, (json.dumps(holder) + "\n").encode())
    except BaseException as error:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(error, OSError):
            raise explain_disk_error("lock the run's folder", folder, error) from error
        raise
    _HELD.add(descriptor)
    return descriptor


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
            f"the file system of {folder} has no locks ({error.strerror}), and without one two processes would "
            "overwrite each other's files; choose a folder on a local disk"
        ) from error


def _holder(descriptor: int) -> str:
    try:
        holder = parse_json(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']} on {holder['host']}, since {holder['started']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "it has not written its process id yet"


def _release_in_child() -> None:
    """Close inherited descriptors: a data worker that outlives its killed parent must not keep the lock."""
    for descriptor in _HELD:
        with suppress(OSError):
            os.close(descriptor)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
