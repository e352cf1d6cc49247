"""What can go wrong with a run's files, as one sentence that says what, where and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

from attnlab.errors import TrainingError

_REFUSED = "permission is denied; change the permissions of that folder, or choose another one for the run"
_IN_THE_WAY = "a file is in the place of a folder; move that file away, or choose another folder for the run"

SENTENCES = {
    errno.ENOSPC: "the disk is full; free some space and give the same command again: what was written before is whole",
    errno.EDQUOT: "the disk quota is used up; free some space and give the same command again: what was written before "
    "is whole",
    errno.EROFS: "the file system is read-only; choose another folder for the run",
    errno.EACCES: _REFUSED,
    errno.EPERM: _REFUSED,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: "a folder is in the place of that file; move it away, or choose another folder for the run",
    errno.ENAMETOOLONG: "the path is too long for the file system; choose a shorter folder for the run",
    errno.EIO: "the disk gives input/output errors; copy what matters to another disk and go on there",
}
"""What to do about each error of the operating system that a user can mend."""


class DamageError(Exception):
    """A file of a checkpoint that is not what was written; the text says which one and how."""


def trouble(what: str, path: Path, error: OSError) -> TrainingError:
    """Say what could not be done with a file or folder, why, and what to do about it."""
    number = error.errno or 0
    why = SENTENCES.get(number, error.strerror or str(error))
    # The file system may stumble over another file than the one that is wanted, such as one in a folder's place.
    culprit = f" (at {error.filename})" if error.filename and Path(error.filename) != path else ""
    return TrainingError(f"cannot {what} {path}: {why}{culprit}")
