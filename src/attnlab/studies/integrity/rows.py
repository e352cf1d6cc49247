"""A CSV file as a header and rows, separated by commas, semicolons or tabs; one clear error if it is not a table."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import RequestError

DELIMITERS = (",", ";", "\t")
NOTHING = frozenset({
    "", "-", "–", "—", "na", "n/a", "nan", "none", "null", "inf", "-inf", "+inf", "infinity", "-infinity", "failed",
    "diverged", "crashed", "oom",
})  # fmt: skip
"""Cells of a run without a score."""
MOST_CELLS = 500_000


@dataclass(frozen=True)
class Rows:
    """The header of a file and its rows, each with the line it stands on."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]

    def column(self, name: str) -> list[str]:
        """Return the cells of one column."""
        place = self.header.index(name)
        return [row[place] for _, row in self.rows]

    def is_numeric(self, name: str) -> bool:
        """Tell whether a column holds numbers, or nothing, and at least one number."""
        texts = [text for text in self.column(name) if text.lower() not in NOTHING]
        return bool(texts) and all(as_number(text) is not None for text in texts)


def read_rows(path: str) -> Rows:
    """Read a CSV file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RequestError(f"cannot read '{path}': {error.strerror or error}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise RequestError(f"cannot read '{path}': it is not UTF-8 text") from error
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise RequestError(f"'{path}' has {len(lines)} lines; a table needs a header and at least one row")
    delimiter = max(DELIMITERS, key=lines[0].count)
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    filled = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                filled.append((reader.line_num, tuple(cell.strip() for cell in row)))
    except csv.Error as error:
        raise RequestError(f"'{path}' is not a table: {error}") from error
    return _checked(path, filled)


def _checked(path: str, rows: list[tuple[int, tuple[str, ...]]]) -> Rows:
    header = rows[0][1]
    if len(header) < 2:
        raise RequestError(
            f"'{path}' has one column, '{header[0]}'; columns are separated by commas, semicolons or tabs"
        )
    twice = next((name for number, name in enumerate(header) if name in header[:number]), None)
    if twice is not None:
        raise RequestError(f"'{path}' has two columns named '{twice}'; give each its own name")
    if all(as_number(name) is not None for name in header):
        raise RequestError(f"'{path}' begins with numbers; the first line must name the columns")
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise RequestError(f"line {number} of '{path}' has {len(row)} cells, and the header has {len(header)}")
    if len(rows) < 2:
        raise RequestError(f"'{path}' has a header and no rows")
    if len(rows) * len(header) > MOST_CELLS:
        raise RequestError(
            f"'{path}' has more than {MOST_CELLS:,} cells; give the scores of runs, not of every example"
        )
    return Rows(path, header, tuple(rows[1:]))


def as_number(text: str) -> float | None:
    """Read a number, with or without a percent sign; None if it is not a finite number."""
    try:
        value = float(text.removesuffix("%").replace("−", "-"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
