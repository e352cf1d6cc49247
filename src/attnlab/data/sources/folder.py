"""A file, or the files of one ending in a folder, as the rows of a source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attnlab.errors import DataError, closest

from .files import OPENERS, ending_of, hash_content, refuse_to_open
from .rows import READERS, FileLayout, Row

SPLITS = {
    "train": ("train", "training"),
    "dev": ("dev", "val", "valid", "validation"),
    "test": ("test", "testing"),
}
"""What the files of a split are called; dev, val, valid and validation are one."""


@dataclass(frozen=True)
class FileReader:
    """Files of one ending, read one after another."""

    paths: tuple[Path, ...]
    layout: FileLayout

    @classmethod
    def find(cls, path: Path, split: str | None, layout: FileLayout) -> FileReader:
        """Take a file, or a folder's files, those of a split alone where one is named."""
        if not path.exists():
            refuse_to_open(path, FileNotFoundError())
        if path.is_dir():
            return cls(tuple(files_of(path, split)), layout)
        if split is not None:
            raise DataError(f"split='{split}' chooses among the files of a folder; {path} is one file: leave it out")
        if ending_of(path) not in READERS:
            raise DataError(f"{path}: cannot read '{path.suffix or path.name}'; {_what_is_read()}")
        return cls((path,), layout)

    @cached_property
    def kind(self) -> str:
        """What the rows are: by the ending, and of JSON by what stands in it."""
        kind, _ = READERS[ending_of(self.paths[0])]
        if kind == "json":
            row = next((row for _, row in self.rows()), {})
            return "squad" if {"context", "answers", "paragraph"} <= set(row) else "json"
        return kind

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its file, its number in the file, and its line."""
        for path in self.paths:
            _, read = READERS[ending_of(path)]
            has_lines = ending_of(path) not in (".parquet", ".json")
            for number, (line, row) in enumerate(read(path, self.layout), start=1):
                yield f"{path}, row {number}{f', line {line}' if has_lines else ''}", row

    def digest(self) -> str:
        """Return the hash of one file's content, or of several in the order of their names."""
        hashes = [hash_content(path) for path in self.paths]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def files_of(folder: Path, split: str | None) -> list[Path]:
    """Return the files that a folder stands for, in the order of their names."""
    readable = sorted(path for path in folder.iterdir() if path.is_file() and ending_of(path) in READERS)
    if not readable:
        folders = sorted(path.name for path in folder.iterdir() if path.is_dir())
        hint = f"; name one of its folders: {', '.join(folders)}" if folders else ""
        raise DataError(f"no file in {folder} can be read; {_what_is_read()}{hint}")
    chosen = readable if split is None else [path for path in readable if is_of_split(path, split)]
    if not chosen:
        usual = {name for names in SPLITS.values() for name in names}
        known = "" if split in usual else closest(split or "", usual)
        names = ", ".join(path.name for path in readable[:8])
        raise DataError(f"no file in {folder} is of the split '{split}'{known or ';'} it has {names}")
    endings = sorted({ending_of(path) for path in chosen})
    if len(endings) > 1:
        raise DataError(f"{folder} has files of several endings ({', '.join(endings)}); name one file")
    return chosen


def is_of_split(path: Path, split: str) -> bool:
    """Tell whether a file's name has a split's name among its words."""
    names = next((names for names in SPLITS.values() if split.lower() in names), (split.lower(),))
    return bool(set(names) & set(re.split(r"[^a-z]+", path.name.lower())))


def _what_is_read() -> str:
    return f"what can be read ends in {', '.join(READERS)}, plain or with {' or '.join(OPENERS)}"
