"""Values that are impossible: beyond a metric's limits, no multiple of 1/n, or an F1 below its exact match.

Impossible values are left out of the analysis. If most values of a metric are impossible, the limits or n are the more
likely mistake: nothing is left out then, and a metric that is beyond its limits is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .finding import IntegrityFinding, IntegrityKind, list_first
from .metrics import COUNTED, LIMITED, PERCENT, PERPLEXITIES, SETS, SIGNED, kind_of
from .resolution import decimals_of, find_resolution, fits, known_set
from .table import Cell, ResultTable, group_cells, value_of
from .units import Units, read_units

EXACT = ("em", "exact", "exactmatch")
MOST = 0.5
"""If more than this share of a metric's values is impossible, its name or n is wrong rather than the values."""


@dataclass(frozen=True)
class Impossible:
    """A finding, the cells to leave out of the analysis, and the metric that cannot be compared at all, if any."""

    finding: IntegrityFinding
    cells: tuple[Cell, ...]
    metric: str = ""


def check_possibility(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Examine a table whose units are known, such as a study's."""
    for impossible in find_impossible(table, read_units(table)):
        yield impossible.finding


def find_impossible(table: ResultTable, units: Units) -> Iterator[Impossible]:
    """Find impossible values of each metric, and of EM and F1 together."""
    for metric in table.metrics:
        cells = [cell for cell in table.values if cell.metric == metric]
        for scale, of_scale in group_cells(cells, units.scale_of).items():
            yield from _beyond(metric, of_scale, scale)
            for n, of_size in group_cells(of_scale, lambda cell: cell.num_examples).items():
                yield from _no_multiple(metric, of_size, scale, n)
    yield from _below_exact_match(table, units)


def _beyond(metric: str, cells: Sequence[Cell], scale: float | None) -> Iterator[Impossible]:
    kind = kind_of(metric)
    if kind in LIMITED and scale is not None:
        low = -scale if kind in SIGNED else 0.0
        wrong = [cell for cell in cells if not low <= value_of(cell) <= scale * (1 + 1e-9)]
        limits = f"{metric} lies between {low:g} and {scale:g}"
    elif kind in PERPLEXITIES:
        wrong = [cell for cell in cells if value_of(cell) < 1]
        limits = f"{metric} is 1 or more"
    else:
        return
    if len(wrong) > MOST * len(cells):
        sentence = f"{limits}, and {len(wrong)} of {len(cells)} values do not: {_show(wrong)}; {metric} is not compared"
        yield Impossible(IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=_places(wrong)), (), metric)
    elif wrong:
        yield Impossible(
            IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, f"{limits}; {_do_not_fit(wrong)}", places=_places(wrong)),
            tuple(wrong),
        )


def _no_multiple(metric: str, cells: Sequence[Cell], scale: float | None, given: int | None) -> Iterator[Impossible]:
    """Find accuracies that are not a whole number of correct answers among n examples."""
    if kind_of(metric) not in COUNTED or scale is None:
        return
    # A value beyond the limits is reported as that.
    inside = [cell for cell in cells if 0 <= value_of(cell) <= scale]
    values = np.array([value_of(cell) for cell in inside])
    rounding = find_resolution(metric, inside).rounding
    n = given or known_set(metric, np.unique(values), scale, rounding)
    if n is None:
        return
    is_multiple = fits(values, n, scale, rounding)
    wrong = [cell for cell, is_fitting in zip(inside, is_multiple, strict=True) if not is_fitting]
    data = {"metric": metric, "num_examples": n, "is_guessed": given is None}
    if len(wrong) > MOST * len(inside):
        sentence = (
            f"{metric} is a multiple of 1/{n}, and {len(wrong)} of {len(inside)} values are not: {_show(wrong)}; they "
            f"were not measured on {n} examples, or were changed afterwards. They stay in the analysis"
        )
        yield Impossible(
            IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=_places(wrong), data=data), ()
        )
    elif wrong:
        source = "" if given else f" (guessed: the others are, as on {SETS[n]})"
        sentence = f"{metric} is a multiple of 1/{n}{source}; {_do_not_fit(wrong)}"
        yield Impossible(
            IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=_places(wrong), data=data), tuple(wrong)
        )


def _below_exact_match(table: ResultTable, units: Units) -> Iterator[Impossible]:
    """An answer that matches exactly has an F1 of 1, so a run's F1 is never below its exact match."""
    exact = {(cell.run, cell.step): cell for cell in table.values if kind_of(cell.metric) in EXACT}
    wrong = []
    for cell in table.values:
        other = exact.get((cell.run, cell.step))
        if kind_of(cell.metric) != "f1" or other is None:
            continue
        if _in_percent(cell, units) < _in_percent(other, units) - _slack(cell, units) - _slack(other, units):
            wrong.append((cell, other))
    if wrong:
        shown = list_first([f"{f1.text} ({f1.place}) is below {em.text}" for f1, em in wrong])
        sentence = f"F1 is never below the exact match of the same run; {shown}. Which of the two is wrong is unknown"
        cells = tuple(cell for pair in wrong for cell in pair)
        yield Impossible(
            IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=_places([f1 for f1, _ in wrong])), cells
        )


def _in_percent(cell: Cell, units: Units) -> float:
    return value_of(cell) * PERCENT / (units.scale_of(cell) or PERCENT)


def _slack(cell: Cell, units: Units) -> float:
    return 0.51 * 10.0 ** -decimals_of(cell.text) * PERCENT / (units.scale_of(cell) or PERCENT)


def _do_not_fit(cells: Sequence[Cell]) -> str:
    return f"{_show(cells)} {'does' if len(cells) == 1 else 'do'} not fit"


def _show(cells: Sequence[Cell]) -> str:
    return list_first([f"{cell.text} ({cell.place})" for cell in cells])


def _places(cells: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(cell.place for cell in cells)
