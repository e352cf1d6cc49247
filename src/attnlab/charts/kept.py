"""Drawings kept in the user's cache: one takes up to a tenth of a second, and starting Vega another half."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from attnlab.machine import cache_folder

MOST = 2000
"""Files that are kept; beyond it the half that was not used for the longest time is removed."""
DIGEST_BYTES = 32


def keep_drawing(source: str, draw: Callable[[], bytes]) -> bytes:
    """Return what was drawn from the same source before, or draw it and keep it.

    A file begins with the digest of what follows, so that a damaged one is drawn again. A drawing that cannot be kept
    (a full disk, a folder that cannot be written) is drawn again the next time.
    """
    key = hashlib.sha256(f"{version('vl-convert-python')} {source}".encode()).hexdigest()
    file = cache_folder() / "charts" / key
    with suppress(OSError):
        content = file.read_bytes()
        if hashlib.sha256(content[DIGEST_BYTES:]).digest() == content[:DIGEST_BYTES]:
            file.touch()
            return content[DIGEST_BYTES:]
    drawn = draw()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{key}.{os.getpid()}")
        aside.write_bytes(hashlib.sha256(drawn).digest() + drawn)
        aside.replace(file)
        _remove_oldest(file.parent)
    return drawn


def _remove_oldest(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MOST:
        for file in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) // 2]:
            file.unlink(missing_ok=True)
