"""Tables without a header: their first row would be read as names of columns, and its scores would be lost.

Names of columns may be numbers too: seeds, lengths, years or settings such as 0.1 and 0.5. They have no decimals, are
evenly spaced, or lie far from the values below them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from attnlab.errors import RequestError

from .figure import CellFigure, is_empty, parse_figure
from .metrics import count_decimals

NEAR = 0.25
"""Scores of two arms differ by at most this share of the larger one, or by the range of the others."""
MAX_SHOWN = 6


def refuse_missing_header(path: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Refuse a table whose first row holds scores in place of the names of columns."""
    body = [row for row in rows if len(row) == len(header)]
    if not body or parse_figure(header[0]) is not None:
        return
    columns = [[row[at] for row in body] for at in range(len(header))]
    figures = {at: figures for at, texts in enumerate(columns) if (figures := _read_figures(texts))}
    first = {at: parse_figure(header[at]) for at in figures}
    if any(figure is None and not is_empty(header[at]) for at, figure in first.items()):
        return
    named = {at: figure for at, figure in first.items() if figure is not None}
    scores = [at for at, figure in named.items() if _is_score(header[at], figure, figures[at])]
    others = [at for at in named if at not in scores and any(count_decimals(figure.text) for figure in figures[at])]
    if len(scores) <= len(others) or _are_evenly_spaced([named[at].value for at in scores]):
        return
    shown = ", ".join(header[:MAX_SHOWN]) + (", …" if len(header) > MAX_SHOWN else "")
    raise RequestError(
        f"'{path}' seems to have no header: its first row is {shown}, and these numbers look like scores. Write a row "
        f"above it that names the columns, such as {','.join(_suggest_names(figures, scores, len(header)))}. If the "
        f"numbers are the names of the columns, give them a word: lr={header[scores[0]]}"
    )


def _read_figures(texts: Sequence[str]) -> list[CellFigure]:
    """Return the figures of a column; none if another cell than an empty one is not a figure."""
    figures = [parse_figure(text) for text in texts if not is_empty(text)]
    return [figure for figure in figures if figure is not None] if all(figures) else []


def _is_score(name: str, figure: CellFigure, others: Sequence[CellFigure]) -> bool:
    """Tell whether a number in place of a name is like those below it: as many decimals, and near them."""
    if figure.spread is not None:
        return True
    decimals = {count_decimals(other.text) for other in others}
    values = [other.value for other in others]
    reach = max(max(values) - min(values), NEAR * max(map(abs, values)))
    is_near = min(values) - reach <= figure.value <= max(values) + reach
    return is_near and count_decimals(figure.text) > 0 and count_decimals(figure.text) in decimals


def _are_evenly_spaced(values: Sequence[float]) -> bool:
    """Tell whether numbers are a grid of settings, such as 0.7, 0.8, 0.9."""
    steps = [round(after - before, 9) for before, after in pairwise(values)]
    return len(steps) > 1 and len({*steps}) == 1 and steps[0] > 0


def _suggest_names(figures: dict[int, list[CellFigure]], scores: Sequence[int], length: int) -> Iterator[str]:
    """Yield a name for each column: arm and task for text, seed for whole numbers, s1, … for scores."""
    texts = [at for at in range(length) if at not in figures]
    for at in range(min(length, MAX_SHOWN)):
        if at in texts:
            yield ("arm", "task")[min(texts.index(at), 1)]
        elif at in scores:
            yield "accuracy" if len(scores) == 1 else f"s{scores.index(at) + 1}"
        else:
            yield "seed"
    if length > MAX_SHOWN:
        yield "…"
