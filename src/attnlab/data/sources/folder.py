"""Rows of a file, or of the files with one ending in a folder."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from attnlab.errors import DataError, closest

from ..cache import hash_once
from ..row import Row
from .files import OPENERS, ending_of, hash_content, refuse_to_open
from .rows import READERS, FileLayout

SPLITS = {"train": ("train", "training"), "dev": ("dev", "val", "valid", "validation"), "test": ("test", "testing")}
"""The names of a split in file names."""
READABLE = f"readable files end in {', '.join(READERS)}, optionally with {' or '.join(OPENERS)}"


@dataclass(frozen=True)
class FileReader:
    """Reads files of one ending, one after another."""

    paths: tuple[Path, ...]
    layout: FileLayout

    @classmethod
    def find(cls, path: Path, split: str | None, layout: FileLayout) -> Self:
        """Find a file, or the files of a folder; if a split is given, only its files."""
        if not path.exists():
            refuse_to_open(path, FileNotFoundError())
        if path.is_dir():
            return cls(tuple(_find_files(path, split)), layout)
        if split is not None:
            raise DataError(f"split='{split}' selects files of a folder, and {path} is one file: omit the split")
        if ending_of(path) not in READERS:
            raise DataError(f"{path}: cannot read '{path.suffix or path.name}'; {READABLE}")
        return cls((path,), layout)

    @cached_property
    def kind(self) -> str:
        """The kind of the rows, by the ending; for JSON by the first row."""
        kind, _ = READERS[ending_of(self.paths[0])]
        if kind == "json":
            row = next((row for _, row in self.rows()), {})
            return "squad" if {"context", "answers", "paragraph"} <= set(row) else "json"
        return kind

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its place: the file, the number of the row, and the line."""
        for path in self.paths:
            _, read = READERS[ending_of(path)]
            has_lines = ending_of(path) not in (".parquet", ".json")
            for number, (line, row) in enumerate(read(path, self.layout), start=1):
                yield f"{path}, row {number}{f', line {line}' if has_lines else ''}", row

    def digest(self) -> str:
        """Return the hash of one file's content, or of several in the order of their names."""
        hashes = [hash_once(path, hash_content) for path in self.paths]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _find_files(folder: Path, split: str | None) -> list[Path]:
    readable = sorted(path for path in folder.iterdir() if path.is_file() and ending_of(path) in READERS)
    if not readable:
        folders = sorted(path.name for path in folder.iterdir() if path.is_dir())
        hint = f"; give one of its folders: {', '.join(folders)}" if folders else ""
        raise DataError(f"no file in {folder} can be read; {READABLE}{hint}")
    chosen = readable if split is None else [path for path in readable if _is_in_split(path, split)]
    if not chosen:
        usual = {name for names in SPLITS.values() for name in names}
        hint = "" if split in usual else closest(split or "", usual)
        names = ", ".join(path.name for path in readable[:8])
        raise DataError(
            f"no file in {folder} belongs to the split '{split}'{hint or ';'} it has {names}. Give one file, such as "
            f"{readable[0]}, or name files by their split, such as train.txt and dev.txt"
        )
    endings = sorted({ending_of(path) for path in chosen})
    if len(endings) > 1:
        raise DataError(f"{folder} has files of several endings ({', '.join(endings)}); give one file")
    return chosen


def _is_in_split(path: Path, split: str) -> bool:
    names = next((names for names in SPLITS.values() if split.lower() in names), (split.lower(),))
    return bool(set(names) & set(re.split(r"[^a-z]+", path.name.lower())))
