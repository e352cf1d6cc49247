"""How verbs print rows: a table fitted to the terminal, plain aligned lines where there is none, or JSON."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their column names; the first column is never broken over lines."""
    if sys.stdout.isatty():
        _print_fitted(columns, rows)
    else:
        _print_aligned(columns, rows)


def print_json(value: Sequence[Any] | Mapping[str, Any]) -> None:
    """Print a value for programs to read, on standard output alone."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _print_fitted(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Imported here because rich costs more than half of what `attnlab --help` may take.
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in rows:
        # Text, not str: a cell may hold square brackets, which rich would read as markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _print_aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
