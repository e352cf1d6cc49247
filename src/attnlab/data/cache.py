"""The cache of trained tokenizers and token files: keys by content, and folders that appear only once complete."""

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
    """Return the SHA-256 of plain data; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


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
