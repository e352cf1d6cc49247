"""A file or folder as bytes, packed on one machine and unpacked on another: the whole of it is there, or nothing."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

from attnlab.errors import StudyError

CONTENT = "content"
PASSING = "lock"
"""A file that says which process works in a folder, which is another one elsewhere."""


def pack(place: Path) -> bytes:
    """Return a file or folder as bytes; what it links to comes along."""
    written = io.BytesIO()
    try:
        with tarfile.open(fileobj=written, mode="w", dereference=True) as archive:
            archive.add(place, CONTENT, filter=without_passing)
    except OSError as error:
        raise StudyError(f"cannot pack {place} to send it: {error.strerror or error}") from error
    return written.getvalue()


def without_passing(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what has no meaning on another machine."""
    return None if Path(member.name).name == PASSING else member


def unpack(parcel: bytes, place: Path) -> None:
    """Put what was packed in a place, instead of what is there; a member that would leave the place is refused."""
    aside, before = (place.with_name(f".{place.name}.{mark}") for mark in ("arriving", "replaced"))
    try:
        remove(aside)
        remove(before)
        with tarfile.open(fileobj=io.BytesIO(parcel)) as archive:
            archive.extractall(aside, filter="data")
        if not (aside / CONTENT).exists():
            raise tarfile.TarError(f"it has no '{CONTENT}'")
        for file in aside.rglob("*"):
            if file.is_file():
                sync(file)
        if place.exists():
            place.rename(before)
        (aside / CONTENT).rename(place)
        sync(place.parent)
        remove(before)
        remove(aside)
    except tarfile.TarError as error:
        raise StudyError(f"what came for {place} is not what was packed: {error}") from error
    except OSError as error:
        raise StudyError(f"cannot unpack {place}: {error.strerror or error}") from error


def sync(place: Path) -> None:
    """Make a file, or the names in a folder, last."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(place: Path) -> None:
    """Remove a file or folder, where there is one."""
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
