"""Errors of a run's files, as one sentence: what failed, where, and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.errors import TrainingError

_FREE_SPACE = "free some space and give the same command again: files that were written before are intact"
_DENIED = "permission is denied; change the permissions of that folder, or choose another one for the run"
_FILE_IN_THE_WAY = "there is a file where a folder is needed; move it away, or choose another folder for the run"

ADVICE = {
    errno.ENOSPC: f"the disk is full; {_FREE_SPACE}",
    errno.EDQUOT: f"the disk quota is used up; {_FREE_SPACE}",
    errno.EROFS: "the file system is read-only; choose another folder for the run",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOTDIR: _FILE_IN_THE_WAY,
    errno.EEXIST: _FILE_IN_THE_WAY,
    errno.EISDIR: "there is a folder where a file is needed; move it away, or choose another folder for the run",
    errno.ELOOP: "it is a symbolic link, which may lead anywhere; remove it, or choose another folder for the run",
    errno.ENAMETOOLONG: "the path is too long for the file system; choose a shorter folder for the run",
    errno.EIO: "the disk reports input/output errors; copy what matters to another disk and continue there",
}


def explain_disk_error(action: str, path: Path, error: OSError) -> TrainingError:
    """Return an error that says which action failed on a path, why, and what to do."""
    reason = ADVICE.get(error.errno or 0, error.strerror or str(error))
    # The failing path may differ from the one requested, such as a file where a parent folder is needed.
    culprit = f" (at {error.filename})" if error.filename and Path(error.filename) != path else ""
    return TrainingError(f"cannot {action} {path}: {reason}{culprit}")


@contextmanager
def explain_disk_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an error of the disk into that of `explain_disk_error`."""
    try:
        yield
    except OSError as error:
        raise explain_disk_error(action, path, error) from error
