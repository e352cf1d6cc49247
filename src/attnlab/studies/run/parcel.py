"""A file or folder that is sent between machines: packed as bytes, unpacked entirely or not at all."""

import copy
import io
import shutil
import tarfile
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError
from attnlab.training.record.files import read_json, sync_folder, write_json

CONTENT = "content"
LOCK = "lock"
"""The lock file of a folder, which is not sent."""


def pack(path: Path) -> bytes:
    """Return a file or folder as bytes, with the targets of its links."""
    written = io.BytesIO()
    try:
        with tarfile.open(fileobj=written, mode="w", dereference=True) as archive:
            archive.add(path, CONTENT, filter=lambda member: None if Path(member.name).name == LOCK else member)
    except OSError as error:
        raise StudyError(f"cannot pack {path} to send it: {error.strerror or error}") from error
    return written.getvalue()


def unpack(parcel: bytes, path: Path) -> None:
    """Replace a path by what was packed; a member that would leave the path is refused."""
    arriving, replaced = (path.with_name(f".{path.name}.{mark}") for mark in ("arriving", "replaced"))
    try:
        remove(arriving)
        remove(replaced)
        with tarfile.open(fileobj=io.BytesIO(parcel)) as archive:
            archive.extractall(arriving, filter="data")
        if not (arriving / CONTENT).exists():
            raise tarfile.TarError(f"it has no '{CONTENT}'")
        for file in arriving.rglob("*"):
            if file.is_file():
                sync_folder(file)
        if path.exists():
            path.rename(replaced)
        (arriving / CONTENT).rename(path)
        sync_folder(path.parent)
        remove(replaced)
        remove(arriving)
    except tarfile.TarError as error:
        raise StudyError(f"what came for {path} is not what was packed: {error}") from error
    except OSError as error:
        raise StudyError(f"cannot unpack {path}: {error.strerror or error}") from error


def remove(path: Path) -> None:
    """Remove a file or folder if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def update_paths(folder: Path, config: dict[str, Any]) -> None:
    """Write the paths and names of a run's config into its folder: its id proves that nothing else can differ."""
    file = folder / "config.json"
    if not file.exists():
        return
    kept = read_json(file)
    try:
        updated = copy.deepcopy(kept)
        updated["start"]["checkpoint"] = config["start"]["checkpoint"]
        for name in ("train", "dev", "tokenizer"):
            updated["data"][name] = config["data"][name]
        for segment, other in zip(updated["segments"], config["segments"], strict=True):
            segment["name"] = other["name"]
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError(f"{file} is not that of this run; delete {folder} to run it again") from error
    if updated != kept:
        write_json(file, updated)
