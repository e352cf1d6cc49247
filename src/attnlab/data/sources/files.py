"""A file as bytes or as lines of text, plain, .gz or .xz; whatever is wrong with it names the file and the line."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from attnlab.errors import DataError, closest

OPENERS: Mapping[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}
"""What opens a compressed file, by its ending."""

BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What Python raises where compressed data is cut off or damaged."""

BLOCK = 1 << 20
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def ending_of(path: Path) -> str:
    """Return what a file is, whatever compresses it: '.jsonl' of 'a.jsonl.xz'."""
    name = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return name.suffix.lower()


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read what it holds, decompressed."""
    try:
        opener = OPENERS.get(path.suffix.lower())
        file: BinaryIO = opener(path) if opener else path.open("rb")
    except OSError as error:
        refuse_to_open(path, error)
    with file:
        yield file


def refuse_to_open(path: Path, error: OSError) -> NoReturn:
    """Say why a file does not open; name the closest one beside it where it is not there."""
    if isinstance(error, FileNotFoundError):
        known = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = closest(path.name, known) or "; give the path of a file or a folder, 'hf:NAME' or 'embedded:NAME'"
        raise DataError(f"there is no {path}{hint}") from error
    raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def hash_content(path: Path) -> str:
    """Return the SHA-256 of what a file holds: the same for plain, .gz and .xz, and under any name."""
    digest = hashlib.sha256()
    with open_bytes(path) as file:
        try:
            while block := file.read(BLOCK):
                digest.update(block)
        except BROKEN as error:
            raise broken(path, "", error) from error
        except OSError as error:
            refuse_to_open(path, error)
    return digest.hexdigest()


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line without its end, with its number from 1."""
    for number, line in read_whole_lines(path):
        yield number, line.removesuffix("\n").removesuffix("\r")


def read_whole_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its end, with its number from 1. A line ends at a line feed and nowhere else."""
    number = 0
    with open_bytes(path) as file:
        lines = iter(file)
        while True:
            try:
                raw = next(lines, None)
            except BROKEN as error:
                raise broken(path, f" after line {number}", error) from error
            except OSError as error:
                refuse_to_open(path, error)
            if raw is None:
                return
            number += 1
            text = decode(path, number, raw)
            yield number, text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text


def decode(path: Path, number: int, raw: bytes) -> str:
    """Read a line's bytes as UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = raw[error.start : error.start + 1].hex()
        raise DataError(
            f"{path}, line {number}: byte {error.start + 1} of the line is 0x{bad}, which is not UTF-8; "
            "convert the file to UTF-8, for example with iconv -f latin1 -t utf-8"
        ) from error


def broken(path: Path, where: str, error: Exception) -> DataError:
    """Say that compressed data is cut off or damaged."""
    kind = "is cut off in the middle of its compressed data" if isinstance(error, EOFError) else "is damaged"
    return DataError(f"{path} {kind}{where} ({error}); fetch or compress it again")
