"""Rows as verbs print them: as a table if it fits, else stacked, or as JSON.

Lines are broken only between words and never by the edge of the terminal, so that the output can be copied.
"""

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.visible import get_unfiltered, make_visible

Rows = Sequence[Sequence[str]]
INDENT = "  "


def print_table(columns: Sequence[str], rows: Rows) -> None:
    """Print rows under their column names; in a narrow terminal each row as a block that names its cells."""
    if _is_narrow_enough(columns, rows):
        _print_aligned(columns, rows)
        return
    for row in rows:
        print(f"{columns[0]} {row[0]}")
        # textwrap does not break at these spaces, so that a name stays beside its cell.
        cells = [f"{name} {cell}".replace(" ", "\N{NO-BREAK SPACE}") for name, cell in zip(columns, row, strict=True)]
        print_below(", ".join(cells[1:]))


def print_entries(columns: Sequence[str], rows: Rows) -> None:
    """Print rows with long cells: a table, or the first two cells on a line and the others below it."""
    if _is_narrow_enough(columns, rows):
        _print_aligned(columns, rows)
        return
    width = max((len(row[0]) for row in rows), default=0)
    for first, second, *others in rows:
        head = f"{first.ljust(width)}{INDENT}{second}".rstrip()
        for line in _wrap(head, "") if len(head) > terminal_width() else [head]:
            print(line)
        for cell in others:
            print_below(cell)


def print_json(value: Sequence[Any] | Mapping[str, Any]) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _is_narrow_enough(columns: Sequence[str], rows: Rows) -> bool:
    return not sys.stdout.isatty() or sum(_widths(columns, rows)) + 2 * (len(columns) - 1) <= terminal_width()


def terminal_width() -> int:
    """Return the number of characters in a line of the terminal."""
    return shutil.get_terminal_size().columns


def _widths(columns: Sequence[str], rows: Rows) -> list[int]:
    return [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]


def _print_aligned(columns: Sequence[str], rows: Rows) -> None:
    widths = _widths(columns, rows)
    for row in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def show_progress(text: str) -> None:
    """Show a text on a terminal, in one line of standard error that the next call replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{make_visible(text)}", end="", file=get_unfiltered(sys.stderr), flush=True)


def print_wrapped(text: str) -> None:
    """Print a text from the left edge, wrapped to the width of the terminal; its further lines are indented."""
    for line in _wrap(text, ""):
        print(line)


def print_below(text: str) -> None:
    """Print an indented text, wrapped to the width of the terminal."""
    for line in _wrap(text, INDENT):
        print(line.replace("\N{NO-BREAK SPACE}", " "))


def _wrap(text: str, indent: str) -> list[str]:
    indents = {"initial_indent": indent, "subsequent_indent": INDENT}
    return textwrap.wrap(text, terminal_width(), **indents, break_long_words=False, break_on_hyphens=False)  # type: ignore[arg-type]
