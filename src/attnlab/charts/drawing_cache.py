"""A cache of drawings on disk: drawing one takes up to 0.1 s, and starting Vega another 0.5 s."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from attnlab.checksums import DamageError, seal, unseal
from attnlab.machine import cache_folder

MAX_FILES = 2000
"""If there are more, the least recently used half is removed."""


def load_or_draw(source: str, draw: Callable[[], bytes]) -> bytes:
    """Return the cached drawing of a source, or draw it and cache it.

    A file ends with its checksum, so that a damaged one is drawn again. A drawing that cannot be cached
    (a full disk, a folder that cannot be written) is drawn again the next time.
    """
    key = hashlib.sha256(f"{version('vl-convert-python')} {source}".encode()).hexdigest()
    file = cache_folder() / "charts" / key
    with suppress(OSError, DamageError):
        drawing = unseal(file.read_bytes(), file)
        file.touch()
        return drawing
    drawn = draw()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{key}.{os.getpid()}")
        with aside.open("xb") as opened:
            opened.write(seal(drawn))
        aside.replace(file)
        _remove_oldest(file.parent)
    return drawn


def _remove_oldest(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MAX_FILES:
        for file in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) // 2]:
            file.unlink(missing_ok=True)
