"""Files that tests of data write and read."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

from attnlab.data import Source, open_source


def write_file(folder: Path, name: str, text: str) -> Path:
    """Write a text, compressed if its name ends in .gz or .xz."""
    path, content = folder / name, text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    if path.suffix == ".xz":
        content = lzma.compress(content)
    path.write_bytes(content)
    return path


def write_documents(folder: Path, documents: list[str], name: str = "a.jsonl") -> Source:
    """Write documents as JSON lines, and open them."""
    return open_source(write_file(folder, name, "".join(json.dumps({"text": text}) + "\n" for text in documents)))


def read_all(path: Path) -> list[dict[str, object]]:
    """Return all rows of a file."""
    return list(open_source(path).rows())
