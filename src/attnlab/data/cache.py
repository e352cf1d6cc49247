"""What is kept between runs, trained tokenizers and token files, in the user's cache; written aside, then renamed."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import DataError


def hash_of(settings: Any) -> str:
    """Return the SHA-256 of plain data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@contextmanager
def writing_aside(target: Path) -> Iterator[Path]:
    """Give a folder to fill, and put it at `target` when it is whole; nothing is left there when it is not."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror}") from error
    try:
        yield aside
        aside.chmod(0o755)
        _put(aside, target)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put(aside: Path, target: Path) -> None:
    try:
        aside.rename(target)
    except OSError:
        # Another process was first with the same content; anything else is worth an error.
        if not (target / "index.json").exists():
            raise
