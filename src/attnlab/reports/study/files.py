"""Files of a report: each is written to a temporary name and moved, so that a reader never sees half a file."""

import errno
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.ownership import describe_risk


def make_place(folder: Path) -> Path:
    """Make the folder of a report; return its path."""
    if risk := describe_risk(folder):
        raise RequestError(risk)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot make {folder}: {error.strerror}; give --out another folder") from error
    return folder


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file atomically; return its path."""
    aside = path.with_name(f".{path.name}.writing")
    try:
        path.parent.mkdir(exist_ok=True)
        aside.unlink(missing_ok=True)
        with aside.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        aside.replace(path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        way_out = "free some space" if error.errno == errno.ENOSPC else "clear what is in the way"
        advice = f"{way_out}, or give --out another folder"
        raise RequestError(f"cannot write the report to {path}: {error.strerror}; {advice}") from error
    return path


def remove_stale_figures(folder: Path, kinds: Collection[str], kept: Collection[Path]) -> None:
    """Remove figures of an earlier report that this one does not have; other files stay."""
    for path in folder.glob("*-*"):
        if path.suffix in (".svg", ".png") and path.name.split("-")[0] in kinds and path not in kept:
            path.unlink(missing_ok=True)
