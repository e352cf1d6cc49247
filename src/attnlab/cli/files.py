"""A file that a verb writes for the user: new, or refused."""

from __future__ import annotations

from pathlib import Path

from attnlab.errors import RequestError


def write_new(target: Path, text: str) -> None:
    """Write a file that is not there yet; one that is stays as it is."""
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise RequestError(f"{target} is there already; give another place with --out FILE") from error
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
