"""Values that cannot be: beyond what a metric can reach, no share of so many examples, an F1 below its exact match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .finding import Finding, listed
from .metrics import BOUNDED, COUNTED, SETS, SIGNED, kind_of, scale_of
from .resolution import decimals_of, find_resolution, fits, known_set
from .table import Cell, ResultTable, value_of

CHECK = "impossible values"
EXACT = ("em", "exact", "exactmatch")


def check_possibility(table: ResultTable, num_examples: int | None = None) -> Iterator[Finding]:
    """Look at every metric, and at pairs of them."""
    for metric in table.metrics:
        cells = [cell for cell in table.values if cell.metric == metric]
        if cells:
            yield from _beyond(metric, cells)
            yield from _no_share(metric, cells, num_examples or table.num_examples.get(metric))
    yield from _below_exact_match(table)


def _beyond(metric: str, cells: Sequence[Cell]) -> Iterator[Finding]:
    kind = kind_of(metric)
    scale = scale_of(metric, [value_of(cell) for cell in cells])
    low = -scale if kind in SIGNED and scale is not None else 0.0
    if kind in BOUNDED | SIGNED and scale is not None:
        wrong = [cell for cell in cells if not low <= value_of(cell) <= scale]
        limits = f"{metric} lies between {low:g} and {scale:g}"
    elif kind in ("ppl", "perplexity"):
        wrong = [cell for cell in cells if value_of(cell) < 1]
        limits = f"{metric} is 1 or more"
    else:
        return
    if wrong:
        yield Finding(CHECK, f"{limits}; {_shown(wrong)}", places=tuple(cell.place for cell in wrong))


def _no_share(metric: str, cells: Sequence[Cell], asked: int | None) -> Iterator[Finding]:
    """Find counts of right answers that are no whole number of them."""
    if kind_of(metric) not in COUNTED:
        return
    values = np.array([value_of(cell) for cell in cells])
    scale, rounding = scale_of(metric, values.tolist()) or 1.0, find_resolution(metric, cells).rounding
    n = asked or known_set(metric, np.unique(values), scale, rounding)
    if n is None:
        return
    right = fits(values, n, scale, rounding)
    wrong = [cell for cell, is_right in zip(cells, right, strict=True) if not is_right]
    if wrong:
        source = "" if asked else f" (guessed: the others are, as on {SETS[n]})"
        yield Finding(
            CHECK,
            f"{metric} is a multiple of 1/{n}{source}; {_shown(wrong)}",
            places=tuple(cell.place for cell in wrong),
            data={"metric": metric, "num_examples": n, "is_guessed": asked is None},
        )


def _below_exact_match(table: ResultTable) -> Iterator[Finding]:
    """An answer that matches exactly has an F1 of 1, so that no run's F1 is below its exact match."""
    exact = {(cell.run, cell.step): cell for cell in table.values if kind_of(cell.metric) in EXACT}
    wrong = []
    for cell in table.values:
        other = exact.get((cell.run, cell.step))
        if (
            kind_of(cell.metric) == "f1"
            and other is not None
            and value_of(cell) < value_of(other) - _slack(cell, other)
        ):
            wrong.append(cell)
    if wrong:
        places = tuple(cell.place for cell in wrong)
        yield Finding(CHECK, f"F1 is never below the exact match of the same run; {_listed(wrong)} is", places=places)


def _slack(*cells: Cell) -> float:
    return sum(0.51 * 10.0 ** -decimals_of(cell.text) for cell in cells)


def _shown(cells: Sequence[Cell]) -> str:
    return f"{_listed(cells)} {'does' if len(cells) == 1 else 'do'} not fit"


def _listed(cells: Sequence[Cell]) -> str:
    return listed([f"{cell.text} ({cell.place})" for cell in cells])
