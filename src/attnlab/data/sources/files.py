"""Files as bytes or lines of text, plain, .gz or .xz; errors name the file and the line."""

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, NoReturn

from attnlab.errors import DataError
from attnlab.inputs import check_regular, suggest_file

OPENERS: Mapping[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}
"""Functions that open a compressed file, by its ending."""

BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""Errors that Python raises if compressed data is truncated or damaged."""

BLOCK = 1 << 20
MAX_RATIO, MIN_LIMIT = 200, 1 << 28
"""Text shrinks to a tenth, hardly ever to a hundredth: a file that grows to more than MAX_RATIO times its size, and to
more than MIN_LIMIT bytes, was made to fill the memory or the disk."""
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def ending_of(path: Path) -> str:
    """Return the ending of a file without that of its compression: '.jsonl' for 'a.jsonl.xz'."""
    name = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return name.suffix.lower()


class _Decompressed(RawIOBase):
    """The decompressed content of a file, up to a limit."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file, self.size = path, file, 0
        self.limit = max(MIN_LIMIT, MAX_RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self.file.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    def readinto(self, buffer: Any) -> int:
        num = int(self.file.readinto(buffer))
        self.size += num
        if self.size > self.limit:
            raise DataError(
                f"{self.path} decompresses to more than {self.limit / 1e6:,.0f} MB, far more than text does; the limit "
                f"is {MAX_RATIO} times its size. If you trust the file, decompress it and give the result"
            )
        return num

    def close(self) -> None:
        self.file.close()
        super().close()


@contextmanager
def open_bytes(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file to read its decompressed content."""
    try:
        check_regular(path)
        opener = OPENERS.get(path.suffix.lower())
        file: BufferedIOBase = BufferedReader(_Decompressed(path, opener(path)), BLOCK) if opener else path.open("rb")
    except OSError as error:
        refuse_to_open(path, error)
    with file:
        yield file


def refuse_to_open(path: Path, error: OSError) -> NoReturn:
    """Raise an error for a file that does not open; for a missing one it names a similar file beside it."""
    if isinstance(error, FileNotFoundError):
        hint = suggest_file(path)
        advice = "" if hint.endswith("?") else "; give the path of a file or a folder, 'hf:NAME' or 'embedded:NAME'"
        raise DataError(f"there is no {path}{hint}{advice}") from error
    raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def hash_content(path: Path) -> str:
    """Return the SHA-256 of a file's content, which does not depend on its compression or name."""
    with open_bytes(path) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except BROKEN as error:
            raise describe_damage(path, "", error) from error
        except OSError as error:
            refuse_to_open(path, error)


def read_lines(path: Path, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Yield each line with its number from 1. Lines end at a line feed only."""
    number = 0
    with open_bytes(path) as file:
        lines = iter(file)
        while True:
            try:
                raw = next(lines, None)
            except BROKEN as error:
                raise describe_damage(path, f" after line {number}", error) from error
            except OSError as error:
                refuse_to_open(path, error)
            if raw is None:
                return
            number += 1
            text = decode(path, number, raw)
            text = text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
            yield number, text if keep_ends else text.removesuffix("\n").removesuffix("\r")


def decode(path: Path, number: int, raw: bytes) -> str:
    """Decode a line as UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = raw[error.start : error.start + 1].hex()
        raise DataError(
            f"{path}, line {number}: byte {error.start + 1} of the line is 0x{bad}, which is not UTF-8; "
            "convert the file to UTF-8, for example with iconv -f latin1 -t utf-8"
        ) from error


def describe_damage(path: Path, where: str, error: Exception) -> DataError:
    """Return an error for compressed data that is truncated or damaged."""
    kind = "is cut off in the middle of its compressed data" if isinstance(error, EOFError) else "is damaged"
    return DataError(f"{path} {kind}{where} ({error}); download or compress it again")
