"""A table inside a longer text, such as a LaTeX or Markdown file: where it begins, its header and its rows."""

from collections.abc import Sequence
from dataclasses import dataclass

Rows = list[tuple[int, list[str]]]


@dataclass(frozen=True)
class TextBlock:
    """One table of a text: the line it begins at, the names of its columns, and its rows with their lines.

    caption: the text about this table; of a text with one table, all of it. unclear: cells that cannot be read, each
    with its line and what is not known in it. has_two_rows: whether the first row is a second row of the header.
    """

    line: int
    header: list[str]
    rows: Rows
    caption: str = ""
    unclear: Sequence[tuple[int, str, str]] = ()
    has_two_rows: bool = False


def fill_first_column(rows: Rows) -> Rows:
    """Repeat the first cell of a row where rows below leave it empty, as a table for readers does."""
    filled: Rows = []
    for number, row in rows:
        first = filled[-1][1][0] if filled and row and not row[0] and any(row) else (row[0] if row else "")
        filled.append((number, [first, *row[1:]]))
    return filled


def make_unique(header: Sequence[str]) -> list[str]:
    """Return the names of columns; the second and later ones without a name get a number."""
    num_unnamed = 0
    unique: list[str] = []
    for name in header:
        num_unnamed += not name
        unique.append(name or ("" if num_unnamed == 1 else f"column {len(unique) + 1}"))
    return unique
