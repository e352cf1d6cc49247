"""Rows as verbs print them: as a table if it fits, else stacked, or as JSON.

`wrapping.py` breaks their lines at the width of the terminal.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.cli.wrapping import GLUE, INDENT, terminal_width, unwrapped
from attnlab.visible import get_unfiltered_stream, make_visible

Rows = Sequence[Sequence[str]]


def print_table(columns: Sequence[str], rows: Rows) -> None:
    """Print rows under their column names; in a narrow terminal each row as a block that names its cells."""
    if _is_narrow_enough(columns, rows):
        _print_aligned(columns, rows)
        return
    room = terminal_width() - len(INDENT)
    for row in rows:
        cells = [f"{name} {cell}".strip() for name, cell in zip(columns, row, strict=True)]
        # A name stays beside its cell, if both fit into a line.
        print(", ".join(cell.replace(" ", GLUE) if len(cell) < room else cell for cell in cells if cell))


def print_entries(columns: Sequence[str], rows: Rows) -> None:
    """Print rows with long cells: a table, or the first two cells on a line and the others below it."""
    if _is_narrow_enough(columns, rows):
        _print_aligned(columns, rows)
        return
    width = max((len(row[0]) for row in rows), default=0)
    for first, second, *others in rows:
        print(f"{first.ljust(width)}{INDENT}{second}".rstrip())
        for cell in others:
            print_below(cell)


def print_json(value: Sequence[Any] | Mapping[str, Any]) -> None:
    """Print a value as JSON."""
    text = make_visible(json.dumps(value, indent=2, ensure_ascii=False))
    print(text, file=unwrapped(get_unfiltered_stream(sys.stdout)))


def _is_narrow_enough(columns: Sequence[str], rows: Rows) -> bool:
    return not sys.stdout.isatty() or sum(_widths(columns, rows)) + 2 * (len(columns) - 1) <= terminal_width()


def _widths(columns: Sequence[str], rows: Rows) -> list[int]:
    return [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]


def _print_aligned(columns: Sequence[str], rows: Rows) -> None:
    widths = _widths(columns, rows)
    for row in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def show_progress(text: str) -> None:
    """Show a text on a terminal, in one line of standard error that the next call replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{make_visible(text)}", end="", file=get_unfiltered_stream(sys.stderr), flush=True)


def print_below(text: str) -> None:
    """Print an indented text."""
    print(f"{INDENT}{text}")
