"""Cells that are no numbers in columns of scores, such as `7O.5`: an error that names them, not a column less.

A column is one of scores with a damaged cell if at least half of its filled cells are numbers, and it would be read as
scores, or as their means or SDs, if the others were empty; or if its name is that of another column of seeds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from attnlab.errors import RequestError

from .figure import is_empty, parse_figure
from .layout import TableLayout, find_layout
from .metrics import recognise_metric
from .patterns import fits_pattern
from .rows import TextTable

MIN_SHARE = 0.5
"""Of the filled cells of a column that must be numbers, so that the others are damaged."""


def find_checked_layout(rows: TextTable, given: Mapping[str, str], metric: str | None = None) -> TableLayout:
    """Find how a table is laid out; refuse one with a cell that is no number in a column of scores."""
    suspects = {name: line for name in rows.header if (line := _find_damaged_line(rows, name)) is not None}
    layout, refusal = None, None
    try:
        layout = find_layout(rows, given, metric)
    except RequestError as error:
        refusal = error
    if suspects and layout is not None:
        # A column of text that names the arms or groups may hold numbers too, such as the widths 128, 256 and full.
        named = {*layout.roles.parts.values(), *layout.roles.groups}
        suspects = {name: line for name, line in suspects.items() if name not in named or recognise_metric(name)}
    if layout is not None:
        suspects |= _find_damaged_seeds(layout)
    for name in _list_scores(rows, given, metric, suspects) if suspects else ():
        raise RequestError(explain_damage(rows.locate(suspects[name]), name, dict(rows.rows)[suspects[name]][name]))
    if layout is None:
        assert refusal is not None
        raise refusal
    return layout


def explain_damage(where: str, column: str, text: str) -> str:
    """Say which cell is no number, and what to do."""
    return (
        f"{where}: '{column}' must hold numbers, not '{text}'. Correct the cell; if its run has no score, leave it "
        "empty or write nan; if the column does not hold scores, name those that do with --map value=COLUMN+…"
    )


def _find_damaged_line(rows: TextTable, name: str) -> str | None:
    """Return the first line of a column of numbers whose cell is none; None if there is no such column or cell."""
    damaged = _list_damaged_lines(rows, name)
    num_filled = sum(not is_empty(text) for text in rows.column(name))
    return damaged[0] if damaged and num_filled - len(damaged) >= MIN_SHARE * num_filled else None


def _list_damaged_lines(rows: TextTable, name: str) -> list[str]:
    return [line for line, row in rows.rows if not is_empty(row[name]) and parse_figure(row[name]) is None]


def _find_damaged_seeds(layout: TableLayout) -> dict[str, str]:
    """Return the columns of text that are named like the columns of seeds, each with the first line of its text."""
    if layout.pattern is None or "{seed}" not in layout.pattern.text:
        return {}
    fitting = [name for name in layout.roles.ignored if fits_pattern(layout.pattern.text, name)]
    damaged = {name: _list_damaged_lines(layout.rows, name) for name in fitting}
    return {name: lines[0] for name, lines in damaged.items() if lines}


def _list_scores(
    rows: TextTable, given: Mapping[str, str], metric: str | None, suspects: Mapping[str, str]
) -> Iterator[str]:
    """Yield the columns that would hold scores, or their means or SDs, if their damaged cells were empty."""
    repaired = [
        (line, {**row, **{name: "" for name in suspects if parse_figure(row[name]) is None}}) for line, row in rows.rows
    ]
    try:
        layout = find_layout(replace(rows, rows=tuple(repaired)), given, metric)
    except RequestError:
        return
    are_seeds = layout.pattern is not None and "{seed}" in layout.pattern.text
    fitting = [name for name in suspects if are_seeds and layout.pattern and fits_pattern(layout.pattern.text, name)]
    scores = {*fitting, *layout.roles.values, *layout.roles.spreads.values(), *layout.aggregates}
    yield from (name for name in suspects if name in scores)
