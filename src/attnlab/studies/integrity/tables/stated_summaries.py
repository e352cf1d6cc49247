"""Means and spreads over seeds that a table states itself: columns such as `Mean ± Std` beside columns of seeds."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from .caption import find_spread_kind
from .column_names import ERRORS, SDS
from .figure import parse_figure
from .layout import GENERAL, TableLayout
from .metrics import count_decimals, split_words
from .patterns import MEANS
from .table import Cell, StatedSummary, Statistic, group_cells

SUMMARIES = frozenset({*GENERAL, "summary", "overall", "total", "final", "results", "final result"})
"""Names of a column that holds a mean with ± beside columns of seeds, and say nothing else of it."""
RANGES = frozenset({"ci", "ci95", "95"})
FILLERS = frozenset({"and", "of", "over", "seeds", "runs", "the", "in", "all"})
"""Words beside a statistic that do not say what it is of, as in `mean over 5 seeds`."""


def read_stated_summaries(layout: TableLayout, cells: Sequence[Cell]) -> Iterator[StatedSummary]:
    """Yield the means and spreads in columns beside columns of seeds, such as mean, acc_std or `Mean ± Std`."""
    if layout.pattern is None or "{seed}" not in layout.pattern.text:
        return
    by_place = {cell.place: cell for cell in cells}
    kind = find_spread_kind(layout.rows.caption)
    for line, row in layout.rows.rows:
        places = [f"{line}, {name}" for name in layout.roles.values]
        of_line = [by_place[place] for place in places if place in by_place]
        runs = list(group_cells(of_line, lambda cell: (cell.arm, cell.group, cell.metric)).values())
        for name in layout.roles.ignored:
            yield from _read_column(name, row, line, runs, kind)


def _read_column(
    name: str, row: Mapping[str, str], line: str, runs: Sequence[Sequence[Cell]], kind: str | None
) -> Iterator[StatedSummary]:
    """Yield the mean, the spread or both in one cell. kind: what the caption calls the spread."""
    figure, words = parse_figure(row[name]), split_words(name)
    has_mean = any(word in MEANS for word in words)
    spreads = [word for word in words if word in (*SDS, *ERRORS)] + ["ci" for word in words if word in RANGES][:1]
    stem = [word for word in words if word not in (*MEANS, *SDS, *ERRORS, *RANGES)]
    about = [of for of in runs if _is_about(stem, of)]
    if figure is None or len(about) != 1 or len(spreads) > 1 or not (has_mean or spreads or figure.spread is not None):
        return
    seeds = [cell for cell in about[0] if cell.value is not None]
    rounding = max((0.5 * 10.0 ** -count_decimals(cell.text) for cell in seeds), default=0.0)
    first, place, values = about[0][0], f"{line}, {name}", tuple(cell.number for cell in seeds)
    named: Statistic = "se" if kind == "se" else "sd" if kind == "sd" else "spread"
    if spreads:
        named = "sd" if spreads[0] in SDS else "se" if spreads[0] in ERRORS else "spread"
    if has_mean or figure.spread is not None:
        yield StatedSummary(first.title, first.metric, "mean", figure.text, place, values, rounding)
        if figure.spread is not None:
            yield StatedSummary(first.title, first.metric, named, figure.spread_text, place, values, rounding)
    elif spreads[0] != "ci":
        yield StatedSummary(first.title, first.metric, named, figure.text, place, values, rounding)


def _is_about(stem: Sequence[str], seeds: Sequence[Cell]) -> bool:
    """Tell whether the words of a column that are none of a statistic name these seeds, or nothing else."""
    parts = [part for part in (seeds[0].arm, seeds[0].group, seeds[0].metric) if part]
    choices = [some for number in range(len(parts) + 1) for some in combinations(parts, number)]
    named = {tuple(sorted(split_words(" ".join(some)))) for some in choices}
    kept = tuple(sorted(word for word in stem if word not in FILLERS and not word.isdigit()))
    return " ".join(stem) in SUMMARIES or kept in named or tuple(sorted(stem)) in named
