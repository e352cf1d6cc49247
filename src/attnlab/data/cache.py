"""The cache of trained tokenizers, token files and hashes of files.

Keys are hashes of content, and folders appear only once complete.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnlab.checksums import DamageError, seal, unseal
from attnlab.errors import DataError
from attnlab.machine import cache_folder

SETTLED = 2_000_000_000
"""Nanoseconds after which a change of a file gives it another time on every file system."""


def hash_of(settings: Any) -> str:
    """Return the SHA-256 of plain data; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def hash_once(path: Path, compute: Callable[[Path], str]) -> str:
    """Return the SHA-256 that `compute` returns for a file, from the cache if this version of the file has one.

    A version is a path with its inode, size and times. The time of the last change (ctime) cannot be set by a program.
    """
    try:
        stat = path.stat()
    except OSError:
        return compute(path)  # which reports the error
    is_settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED
    version = [compute.__qualname__, str(path.resolve()), stat.st_dev, stat.st_ino, stat.st_size]
    kept = cache_folder() / "hashes" / hash_of([*version, stat.st_mtime_ns, stat.st_ctime_ns])[:32]
    if is_settled:
        with suppress(OSError, DamageError):
            return unseal(kept.read_bytes(), kept).decode()
    digest = compute(path)
    if is_settled:
        with suppress(OSError):  # a hash that cannot be stored is computed again next time
            kept.parent.mkdir(parents=True, exist_ok=True)
            temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
            temporary.write_bytes(seal(digest.encode()))
            temporary.replace(kept)
    return digest


@contextmanager
def write_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill and rename it to `target` at the end; after an error it is removed."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror}") from error
    try:
        yield temporary
        temporary.chmod(0o755)
        try:
            temporary.rename(target)
        except OSError:
            # Another process may have written the same content first; any other failure is an error.
            if not (target / "index.json").exists():
                raise
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
