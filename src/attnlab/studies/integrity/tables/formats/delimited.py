"""CSV files: cells separated by commas, semicolons or tabs, with a decimal point, or a comma beside semicolons."""

import csv
import re

from attnlab.errors import RequestError

from ..rows import TextTable, make_table
from .header_rows import read_header

DELIMITERS = (",", ";", "\t")
DECIMAL_COMMA = re.compile(r"([+\-−]?\d+),(\d+%?)")


def read_delimited(path: str, lines: list[str]) -> TextTable:
    """Read a CSV file; lines before the header that begin with # are comments."""
    num_comments = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    lines = [*[""] * num_comments, *lines[num_comments:]]
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2:
        num_lines = "only one line" if filled else "no lines"
        raise RequestError(f"'{path}' has {num_lines}; a table needs a header and at least one row")
    delimiter = max(DELIMITERS, key=filled[0].count)
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        stripped = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise RequestError(f"'{path}' is not a table: {error}") from error
    filled_rows = [(number, row) for number, row in stripped if any(row)]
    if not filled_rows:
        raise RequestError(f"'{path}' has only empty cells; a table needs a header and at least one row")
    (_, header), *rows = filled_rows
    if delimiter != ",":
        rows = [(number, [DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row]) for number, row in rows]
    joined = read_header(path, header, rows)
    return make_table(path, joined.names, joined.rows, remarks=joined.remarks)
