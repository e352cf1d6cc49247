"""Rows of a source with words for where each stands, so that whatever is wrong with one can be said with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.data import Source, open_source
from attnlab.errors import TaskError, closest

Row = Mapping[str, Any]


def opened(source: str | Path | Source, split: str | None = None) -> Source:
    """Return a source by its name, or the one that was opened already."""
    return source if isinstance(source, Source) else open_source(source, split=split)


def located(source: Source) -> Iterator[tuple[str, Row]]:
    """Yield each row behind its place; a source without rows is an error."""
    is_empty = True
    for place, row in source.reader.rows():
        is_empty = False
        yield place, row
    if is_empty:
        raise TaskError(f"{source.name} has no rows; give one with at least one")


def column_of(row: Row, names: Sequence[str], place: str) -> str:
    """Return the first of several names that a row has; none is an error with the closest one."""
    for name in names:
        if name in row:
            return name
    hint = closest(names[0], row) or "."
    raise TaskError(f"{place}: a column '{names[0]}' is needed{hint} The columns are {', '.join(map(repr, row))}")


def text_in(row: Row, column: str, place: str) -> str:
    """Return a text that is not blank."""
    text = row.get(column)
    if not isinstance(text, str) or not text.strip():
        raise TaskError(f"{place}: column '{column}' is {text!r} where a text is needed; fill it in or drop the row")
    return text
