"""Values that are impossible: beyond a metric's limits, no multiple of 1/n, or an F1 below its exact match.

Impossible values are left out of the analysis. If most values of a metric are impossible, the limits or n are the more
likely mistake: nothing is left out then, and a metric that is beyond its limits is not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables import metrics
from ..tables.table import Cell, ResultTable, group_cells
from .units import Units

EXACT = ("em", "exact", "exactmatch")
MAX_WRONG_SHARE = 0.5
"""If more than this share of a metric's values is impossible, its name or n is wrong rather than the values."""


@dataclass(frozen=True)
class ImpossibleValues:
    """A finding, the cells to leave out of the analysis, and the metric that cannot be compared at all, if any."""

    finding: IntegrityFinding
    cells: tuple[Cell, ...]
    metric: str = ""


def find_impossible(table: ResultTable, units: Units) -> Iterator[ImpossibleValues]:
    """Find impossible values of each metric, and of EM and F1 together."""
    for metric in table.metrics:
        cells = [cell for cell in table.values if cell.metric == metric]
        for scale, of_scale in group_cells(cells, units.find_scale).items():
            yield from _find_beyond_limits(metric, of_scale, scale)
            of_runs = [cell for cell in of_scale if not cell.is_mean]
            for n, of_size in group_cells(of_runs, lambda cell: cell.num_examples).items():
                for of_set in _split_by_set(metric, of_size, scale, n):
                    yield from _find_no_multiples(metric, of_set, scale, n)
            yield from _find_impossible_means(metric, [cell for cell in of_scale if cell.is_mean], scale)
    yield from _find_below_exact_match(table, units)


def _find_beyond_limits(metric: str, cells: Sequence[Cell], scale: float | None) -> Iterator[ImpossibleValues]:
    name = metrics.recognise_metric(metric)
    if name in metrics.LIMITED and scale is not None:
        low = -scale if name in metrics.SIGNED else 0.0
        wrong = [cell for cell in cells if not low <= cell.number <= scale * (1 + 1e-9)]
        limits = f"{metric} lies between {low:g} and {scale:g}"
    elif name in metrics.PERPLEXITIES:
        wrong = [cell for cell in cells if cell.number < 1]
        limits = f"{metric}: a perplexity is at least 1"
    else:
        return
    if len(wrong) > MAX_WRONG_SHARE * len(cells):
        sentence = f"{limits}, and {len(wrong)} of {len(cells)} values do not: {_show(wrong)}; {metric} is not compared"
        yield ImpossibleValues(_report(sentence, wrong), (), metric)
    elif wrong:
        yield ImpossibleValues(_report(f"{limits}; {_show_misfits(wrong)}", wrong), tuple(wrong))


def _split_by_set(metric: str, cells: list[Cell], scale: float | None, given: int | None) -> list[list[Cell]]:
    """Return the cells of each evaluation set: of each group, if n is not given and all of them fit no known set."""
    is_one_set = given is not None or scale is None or _guess_size(metric, cells, scale) is not None
    return [cells] if is_one_set else list(group_cells(cells, lambda cell: cell.group).values())


def _guess_size(metric: str, cells: Sequence[Cell], scale: float) -> int | None:
    """Return the number of examples of the known set that the values within the limits fit; None if there is none."""
    inside = [cell for cell in cells if 0 <= cell.number <= scale]
    _, rounding = metrics.find_resolution(metric, inside)
    return metrics.find_known_set(np.unique([cell.number for cell in inside]), scale, rounding)


def _find_no_multiples(
    metric: str, cells: Sequence[Cell], scale: float | None, given: int | None
) -> Iterator[ImpossibleValues]:  # fmt: skip
    """Find accuracies that are not a whole number of correct answers among n examples."""
    if metrics.recognise_metric(metric) not in metrics.COUNTED or scale is None:
        return
    # A value beyond the limits is reported as that.
    inside = [cell for cell in cells if 0 <= cell.number <= scale]
    values = np.array([cell.number for cell in inside])
    _, rounding = metrics.find_resolution(metric, inside)
    n = given or _guess_size(metric, inside, scale)
    if n is None:
        return
    fits = metrics.are_multiples(values, n, scale, rounding)
    wrong = [cell for cell, is_fitting in zip(inside, fits, strict=True) if not is_fitting]
    data = {"metric": metric, "num_examples": n, "is_guessed": given is None}
    if len(wrong) > MAX_WRONG_SHARE * len(inside):
        sentence = (
            f"{metric} is a multiple of 1/{n}, and {len(wrong)} of {len(inside)} values are not: {_show(wrong)}; they "
            f"were not measured on {n} examples, or were changed afterwards. They stay in the analysis"
        )
        yield ImpossibleValues(_report(sentence, wrong, data), ())
    elif wrong:
        source = "" if given else f" (guessed: the others are, as on {metrics.SETS[n]})"
        sentence = f"{metric} is a multiple of 1/{n}{source}; {_show_misfits(wrong)}"
        yield ImpossibleValues(_report(sentence, wrong, data), tuple(wrong))


def _find_impossible_means(metric: str, cells: Sequence[Cell], scale: float | None) -> Iterator[ImpossibleValues]:
    """Find means over k seeds that are no multiple of 1/(k·n) (GRIM, Brown and Heathers 2017); n and k are given."""
    if metrics.recognise_metric(metric) not in metrics.COUNTED or scale is None:
        return
    wrong = [cell for cell in cells if 0 <= cell.number <= scale and not _is_possible_mean(cell, scale)]
    if wrong:
        cell, is_one = wrong[0], len(wrong) == 1
        sentence = (
            f"the mean {metric} of k seeds on n examples is a multiple of 1/(k·n); {_show_misfits(wrong)} (k = "
            f"{cell.num_seeds}, n = {cell.num_examples}{'' if is_one else ' for the first'}). n or k is not what the "
            "table says, seeds were rounded coarsely before averaging, or the value is wrong. "
            f"{'It stays' if is_one else 'They stay'} in the analysis"
        )
        yield ImpossibleValues(_report(sentence, wrong, {"metric": metric}), ())


def _is_possible_mean(cell: Cell, scale: float) -> bool:
    """Tell whether a mean is a multiple of 1/(k·n); True if its digits are too few to decide, or k or n is unknown."""
    if cell.num_seeds is None or cell.num_examples is None:
        return True
    rounding = 10.0 ** -metrics.count_decimals(cell.text)
    # The scores of the seeds may have been rounded to as many digits as their mean.
    slack = rounding if cell.num_seeds == 1 else 2 * rounding
    return bool(metrics.are_multiples(np.array([cell.number]), cell.num_seeds * cell.num_examples, scale, slack)[0])


def _find_below_exact_match(table: ResultTable, units: Units) -> Iterator[ImpossibleValues]:
    """An answer that matches exactly has an F1 of 1, so a run's F1 is never below its exact match."""
    exact = {(cell.run, cell.step): cell for cell in table.values if metrics.recognise_metric(cell.metric) in EXACT}
    wrong = []
    for f1 in table.values:
        em = exact.get((f1.run, f1.step))
        if metrics.recognise_metric(f1.metric) != "f1" or em is None:
            continue
        factors = [metrics.PERCENT / (units.find_scale(cell) or metrics.PERCENT) for cell in (f1, em)]
        digits = [metrics.count_decimals(cell.text) for cell in (f1, em)]
        slack = sum(0.51 * 10.0**-num * factor for num, factor in zip(digits, factors, strict=True))
        if f1.number * factors[0] < em.number * factors[1] - slack:
            wrong.append((f1, em))
    if wrong:
        shown = list_first([f"{f1.text} ({f1.place}) is below {em.text}" for f1, em in wrong])
        sentence = f"F1 is never below the exact match of the same run; {shown}. Which of the two is wrong is unknown"
        cells = tuple(cell for pair in wrong for cell in pair)
        yield ImpossibleValues(_report(sentence, [f1 for f1, _ in wrong]), cells)


def _report(sentence: str, cells: Sequence[Cell], data: Mapping[str, Any] | None = None) -> IntegrityFinding:
    places = tuple(cell.place for cell in cells)
    return IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=places, data=data or {})


def _show_misfits(cells: Sequence[Cell]) -> str:
    return f"{_show(cells)} {'does' if len(cells) == 1 else 'do'} not fit"


def _show(cells: Sequence[Cell]) -> str:
    return list_first([f"{cell.text} ({cell.place})" for cell in cells])
