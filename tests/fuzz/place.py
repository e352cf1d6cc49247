"""A copy of the examples that is repaired after each input: only what has changed is copied again."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

Stamp = tuple[int, ...]


class Place:
    """The folder that inputs run in. Every file has a stamp, which changes with each write to it."""

    def __init__(self, examples: Path, folder: Path) -> None:
        self.examples, self.folder = examples, folder
        shutil.copytree(examples, folder)
        self.stamps = _read_stamps(folder)

    def list_files(self) -> set[str]:
        """List the paths of all files and folders, without those of an open database."""
        return {name for name in _read_stamps(self.folder) if not name.endswith(("-wal", "-shm"))}

    def restore(self) -> None:
        """Remove what an input has made, and copy what it has changed or removed."""
        self.folder.mkdir(exist_ok=True)
        now = _read_stamps(self.folder)
        # sqlite remembers an open file by its number, so a database is always a new file.
        changed = {name for name, stamp in now.items() if self.stamps.get(name) != stamp or name.endswith(".sqlite")}
        for name in sorted(changed, reverse=True):  # a folder after what is in it
            path = self.folder / name
            path.rmdir() if stat.S_ISDIR(now[name][0]) else path.unlink()
        for name in sorted((self.stamps.keys() - now.keys()) | (self.stamps.keys() & changed)):
            path = self.folder / name
            path.mkdir() if stat.S_ISDIR(self.stamps[name][0]) else shutil.copy2(self.examples / name, path)
            self.stamps[name] = _read_stamp(os.lstat(path))


def _read_stamps(folder: Path) -> dict[str, Stamp]:
    return {
        os.path.relpath(entry.path, folder): _read_stamp(entry.stat(follow_symlinks=False))
        for entry in _walk(str(folder))
    }


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)


def _read_stamp(status: os.stat_result) -> Stamp:
    """Return what tells a file that was written to; the time of the last change cannot be set by a program."""
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
