"""The rows of a file, by its ending: lines of text, JSON lines, tables and Parquet, each with its line number."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.errors import DataError
from attnlab.inputs import parse_json

from ..row import Row
from .files import BROKEN, describe_damage, open_bytes, read_lines
from .squad import read_json

Unit = Literal["line", "paragraph", "file"]
UNITS: tuple[Unit, ...] = ("line", "paragraph", "file")
Located = Iterator[tuple[int, Row]]
"""Rows with the line where each begins, or, if a format has no lines, the number of the row."""

QUOTED = re.compile(r'(^|,)"(?:[^"]|"")*"(?=,|$)')
"""A field of a .csv quoted as in RFC 4180."""
MAX_FIELD_LENGTH = 1 << 24


@dataclass(frozen=True)
class FileLayout:
    """Where a document of a text file ends, and the columns of a table without a header."""

    unit: Unit = "line"
    columns: tuple[str, ...] | None = None


BY_LINE = FileLayout()


def read_text(path: Path, layout: FileLayout) -> Located:
    """Yield documents as {'text': …}: lines that are not blank, paragraphs up to a blank line, or the whole file."""
    start, lines = 1, list[str]()
    for number, line in read_lines(path):
        is_blank = not line.strip()
        if layout.unit == "line":
            if not is_blank:
                yield number, {"text": line}
        elif is_blank and layout.unit == "paragraph":
            if lines:
                yield start, {"text": "\n".join(lines)}
            lines = []
        elif lines or not is_blank:
            start = start if lines else number
            lines.append(line)
    if lines:
        yield start, {"text": "\n".join(lines).rstrip()}


def read_json_lines(path: Path, layout: FileLayout) -> Located:
    """Yield the object on each line."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not JSON: {error.msg} at column {error.colno}; each line needs one "
                f"complete object, and this one ends in {line[-30:]!r}"
            ) from error
        if not isinstance(row, dict):
            raise DataError(f'{path}, line {number}: needs an object such as {{"text": …}}, not {line[:30]!r}')
        yield number, row


def read_tab_separated(path: Path, layout: FileLayout) -> Located:
    """Yield the rows of a table in which quotes are literal, as in GLUE."""
    fields = ((number, line.split("\t")) for number, line in read_lines(path) if line)
    yield from _name_columns(path, fields, layout.columns)


def read_comma_separated(path: Path, layout: FileLayout) -> Located:
    """Yield the rows of a table with quotes as in RFC 4180."""
    yield from _name_columns(path, _read_quoted_fields(path, 0 if layout.columns is None else 1), layout.columns)


def _read_quoted_fields(path: Path, number: int) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each row; `number` is that of the first row, 0 for a header."""
    # Articles exceed the default limit of csv; a limit is still needed for quotes that are never closed.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD_LENGTH))
    raw: list[str] = []
    start = 1

    def feed() -> Iterator[str]:
        for _, line in read_lines(path, keep_ends=True):
            raw.append(line)
            yield line

    reader = csv.reader(feed(), strict=True)
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise _refuse_quote(path, number, start, str(error)) from error
        if fields is None:
            return
        text = "".join(raw).rstrip("\r\n")
        if '"' in text and '"' in QUOTED.sub(r"\1", text):
            raise _refuse_quote(path, number, start, "a quote inside a field that is not quoted")
        if fields:
            yield start, fields
            number += 1
        start += len(raw)
        raw.clear()


def _refuse_quote(path: Path, number: int, start: int, problem: str) -> DataError:
    return DataError(
        f"{path}, row {number}, which begins at line {start}: a stray quote ({problem}); put the field in quotes and "
        "double those inside it, or save the table as .tsv, in which quotes are literal"
    )


def _name_columns(path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[str] | None) -> Located:
    """Yield each row as a dict; the first row names the columns unless they are given."""
    count = 0
    for number, fields in rows:
        if columns is None:
            repeated = sorted({name for name in fields if fields.count(name) > 1})
            if repeated:
                raise DataError(
                    f"{path}, line 1: the header names {', '.join(map(repr, repeated))} more than once; if the file "
                    "has no header, give columns=[…]"
                )
            columns = fields
            continue
        count += 1
        if len(fields) != len(columns):
            raise DataError(
                f"{path}, row {count}, line {number}: {len(fields)} fields, but {len(columns)} are needed "
                f"({', '.join(columns)}); the row begins {' · '.join(fields)[:60]!r}"
            )
        yield number, dict(zip(columns, fields, strict=True))


def read_parquet(path: Path, layout: FileLayout) -> Located:
    """Yield the rows of a Parquet file, read in batches."""
    # Imported here: Arrow takes time and memory, and only this format needs it.
    import pyarrow
    import pyarrow.parquet

    count = 0
    with open_bytes(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
            for batch in table.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    count += 1
                    yield count, row
        except BROKEN as error:
            raise describe_damage(path, f" after row {count}", error) from error
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:  # text in it may not be UTF-8
            first = str(error).splitlines()[0]
            raise DataError(f"{path} is not valid Parquet: {first}, after row {count}; write it again") from error


READERS: Mapping[str, tuple[str, Callable[[Path, FileLayout], Located]]] = {
    **dict.fromkeys((".txt", ".text", ".tokens", ".raw"), ("text", read_text)),
    ".jsonl": ("jsonl", read_json_lines),
    ".csv": ("csv", read_comma_separated),
    ".tsv": ("tsv", read_tab_separated),
    ".parquet": ("parquet", read_parquet),
    ".json": ("json", lambda path, layout: read_json(path)),
}
"""The kind of a file and the function that reads it, by its ending."""
