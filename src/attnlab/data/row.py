"""A row of a source: its columns by name."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def hash_rows(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of rows."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return digest.hexdigest()
