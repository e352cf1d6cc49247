"""Files that a verb writes for the user; an existing file is never overwritten."""

from pathlib import Path

from attnlab.errors import RequestError


def write_new(target: Path, text: str) -> None:
    """Write a new file; refuse one that exists."""
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise RequestError(f"{target} exists already; give another path with --out FILE") from error
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
