"""Cells of a mean with both ends of its 95 % interval, such as `71.2 [69.8, 72.6]`: read as ± half of the interval."""

import re

from attnlab.errors import RequestError

from .caption import SpreadKind, find_spread_kind
from .figure import CellFigure, is_empty, parse_figure
from .layout import TableLayout

LEVEL = re.compile(r"(\d+(?:\.\d+)?)\s*\\?%?[\s-]*(?:CI|confidence|interval)", re.IGNORECASE)
NAMED = re.compile(r"\b(?:CIs?|CI95|confidence)\b", re.IGNORECASE)


def check_interval(where: str, name: str, figure: CellFigure) -> None:
    """Refuse an interval whose middle is not its mean: half of it would be wrong on either side."""
    if figure.interval is None or figure.is_symmetrical:
        return
    low, high = figure.interval
    raise RequestError(
        f"{where}: the interval of '{name}', {low:g} to {high:g}, is not symmetrical about {figure.text}, so that it "
        f"has no single ±. Write the mean with half of its 95 % interval, such as {figure.text} ± "
        f"{figure.spread_text}, and give --spread ci; or give the SD over seeds"
    )


def read_intervals(layout: TableLayout, kind: SpreadKind | None) -> list[str]:
    """Say how the intervals of a table are read; refuse those that are not known to be 95 % intervals.

    kind: what the user says that spreads are.
    """
    cells = [
        (name, row[name]) for _, row in layout.rows.rows for name in layout.roles.values if not is_empty(row[name])
    ]
    figures = [(name, text, figure) for name, text in cells if (figure := parse_figure(text)) is not None]
    intervals = [(name, text) for name, text, figure in figures if figure.interval is not None]
    if not intervals:
        return []
    where, (name, text) = f"'{layout.rows.name}'", intervals[0]
    other = next((text for _, text, figure in figures if figure.spread is not None and figure.interval is None), None)
    if other is not None:
        raise RequestError(
            f"{where} has cells with an interval, such as {text}, and cells with a ±, such as {other}; write all as a "
            "mean with ± half of its 95 % interval, and give --spread ci"
        )
    said = " ".join([*(name for name, _ in intervals[:1]), layout.rows.caption])
    levels = {match[1] for match in LEVEL.finditer(said)}
    is_known = kind == "ci" or (kind is None and (bool(NAMED.search(said)) or find_spread_kind(said) == "ci"))
    if not is_known or (kind is None and levels - {"95"}):
        raise RequestError(
            f"{where}: '{name}' has intervals, such as {text}. If they are 95 % intervals of the mean over seeds, give "
            "--spread ci; if not, write the mean ± its SD over seeds"
        )
    return [f"{text} is read as its mean with a 95 % interval, half of which is the ±"]
