"""A CSV file as a header and rows, separated by commas, semicolons or tabs; one clear error if it is not a table."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import RequestError

DELIMITERS = (",", ";", "\t")
NOTHING = frozenset({
    "", "-", "–", "—", "na", "n/a", "nan", "none", "null", "inf", "-inf", "+inf", "infinity", "-infinity", "failed",
    "diverged", "crashed", "oom",
})  # fmt: skip
"""Cells of a run without a score."""
MAX_CELLS = 500_000


@dataclass(frozen=True)
class CsvRows:
    """The columns of a file, and each row by column with its line number."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, Mapping[str, str]], ...]

    def column(self, name: str) -> list[str]:
        """Return the cells of one column."""
        return [row[name] for _, row in self.rows]

    def is_numeric(self, name: str) -> bool:
        """Tell whether a column holds numbers, or nothing, and at least one number."""
        texts = [text for text in self.column(name) if text.lower() not in NOTHING]
        return bool(texts) and all(parse_number(text) is not None for text in texts)


def read_rows(path: str) -> CsvRows:
    """Read a CSV file."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise RequestError(f"cannot read '{path}': {error.strerror or error}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise RequestError(f"cannot read '{path}': it is not UTF-8 text") from error
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2:
        raise RequestError(f"'{path}' has {len(filled)} lines; a table needs a header and at least one row")
    reader = csv.reader(lines, delimiter=max(DELIMITERS, key=filled[0].count))
    try:
        stripped = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise RequestError(f"'{path}' is not a table: {error}") from error
    (_, header), *rows = [(number, row) for number, row in stripped if any(row)]
    _check_header(path, header)
    for number, row in rows:
        if len(row) != len(header):
            raise RequestError(f"line {number} of '{path}' has {len(row)} cells, and the header has {len(header)}")
    if not rows:
        raise RequestError(f"'{path}' has a header and no rows")
    if (len(rows) + 1) * len(header) > MAX_CELLS:
        raise RequestError(f"'{path}' has more than {MAX_CELLS:,} cells; give the scores of runs, not of every example")
    return CsvRows(path, tuple(header), tuple((number, dict(zip(header, row, strict=True))) for number, row in rows))


def _check_header(path: str, header: list[str]) -> None:
    if len(header) < 2:
        raise RequestError(
            f"'{path}' has one column, '{header[0]}'; columns are separated by commas, semicolons or tabs"
        )
    twice = next((name for number, name in enumerate(header) if name in header[:number]), None)
    if twice is not None:
        raise RequestError(f"'{path}' has two columns named '{twice}'; give each its own name")
    if all(parse_number(name) is not None for name in header):
        raise RequestError(f"'{path}' begins with numbers; the first line must name the columns")


def parse_number(text: str) -> float | None:
    """Read a number, with or without a percent sign; None if it is not a finite number."""
    try:
        value = float(text.removesuffix("%").replace("−", "-"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
