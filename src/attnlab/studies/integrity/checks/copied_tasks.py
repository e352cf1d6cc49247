"""Tasks with the scores of another task in every arm, as from a column that was pasted twice.

Two tasks are different examples, so that at least a quarter of the variance between arms is taken to be each task's
own. Two independent values with the SD σ/2 are rounded to the same multiple of r with probability at most erf(r/σ).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import erf

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import KNOWN, find_resolution, recognise_metric, remove_direction, split_words, standardise_metric
from ..tables.table import Cell, ResultTable, group_cells, join_words

MIN_EQUAL = 3
"""Fewer equal values are not called a copy."""
RunKey = tuple[str, str, float | None]
"""Arm, seed and step."""


def split_tasks_from_metrics(table: ResultTable) -> ResultTable:
    """Return the table with `MNLI acc` and `QQP acc` as one metric in two groups; names of no known metric are groups.

    Columns are compared with each other within a metric, and a header of two rows puts the task into its name.
    """
    keys = {metric: _split_metric(metric) for metric in table.metrics}
    if len({*keys.values()}) < len(keys) or len({metric for metric, _ in keys.values()}) == len(keys):
        return table
    cells = []
    for cell in table.cells:
        metric, task = keys[cell.metric]
        cells.append(replace(cell, metric=metric, group=join_words(task, cell.group)))
    return replace(table, cells=tuple(cells))


def _split_metric(name: str) -> tuple[str, str]:
    """Return the metric and the task in the name of a metric."""
    if not recognise_metric(name):
        return "score", remove_direction(name)
    words = [word for word in remove_direction(name).split() if not {*split_words(word)} & KNOWN]
    return standardise_metric(name), " ".join(words)


def find_copied_tasks(table: ResultTable, odds: float, known: Collection[str]) -> Iterator[IntegrityFinding]:
    """Find tasks with equal scores in all runs, unless chance explains it. known: places that are reported already.

    Metrics of one task may be equal by definition, as accuracy and micro F1 are; those of two tasks are not.
    """
    names = {cell.place: cell.metric for cell in table.values}
    has_tasks = {(cell.metric, cell.group) for cell in table.values if cell.group}
    table = split_tasks_from_metrics(table)
    columns = group_cells(table.values, lambda cell: (cell.metric, cell.group))
    resolutions = {
        metric: find_resolution(metric, cells)[0]
        for metric, cells in group_cells(table.values, lambda cell: cell.metric).items()
    }
    runs = {key: {(cell.arm, cell.seed, cell.step): cell for cell in cells} for key, cells in columns.items()}
    pairs = [
        (first, second)
        for first, second in combinations(columns, 2)
        if first[0] == second[0] or (first[1] != second[1] and {first, second} <= has_tasks)
    ]
    num_pairs = Counter(first[0] if first[0] == second[0] else "" for first, second in pairs)
    for first, second in pairs:
        cells = columns[second]
        if not _are_equal(runs[first], runs[second]) or {cell.place for cell in cells} <= {*known}:
            continue
        metric = first[0] if first[0] == second[0] else ""
        resolution = max(resolutions[first[0]], resolutions[second[0]])
        is_certain = _bound_chance(cells, resolution) * num_pairs[metric] < odds
        metrics = [names[columns[key][0].place] for key in (first, second)]
        yield _report((first, second), metrics, cells, is_certain)


def _are_equal(first: Mapping[RunKey, Cell], second: Mapping[RunKey, Cell]) -> bool:
    """Tell whether two tasks have the same value in every run, and several arms and values."""
    if first.keys() != second.keys() or len({arm for arm, _, _ in first}) < 2:
        return False
    is_same = all(cell.number == second[run].number for run, cell in first.items())
    return is_same and len({cell.number for cell in first.values()}) >= MIN_EQUAL


def _bound_chance(cells: Sequence[Cell], resolution: float) -> float:
    """Bound the probability that another task has all these values; one of each value counts."""
    values = np.unique([cell.number for cell in cells])
    return float(erf(resolution / values.std(ddof=1))) ** len(values)


def _report(
    keys: Sequence[tuple[str, str]], columns: Sequence[str], cells: Sequence[Cell], is_certain: bool
) -> IntegrityFinding:
    """Report equal tasks, by metric and task. columns: their metrics in the table, which may tell them apart."""
    shown = list_first([f"{cell.arm} {cell.text}" for cell in cells], 3)
    reason = (
        "Chance produces this in less than one of 1000 tables: one column is probably a copy of the other"
        if is_certain
        else "At this precision it may be a copy or a coincidence"
    )
    (first_metric, first), (second_metric, second) = keys
    what = f"{second} has the {second_metric} of {first}"
    if first_metric != second_metric:
        what = f"{second_metric} of {second} has the values of {first_metric} of {first}"
    elif columns[0] != columns[1] and not (first and second):
        what = f"'{columns[1]}' has the values of '{columns[0]}'"
    arms = len({cell.arm for cell in cells})
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{what} in all {arms} arms ({shown}). {reason}",
        is_fault=is_certain,
        places=tuple(cell.place for cell in cells),
        data={"steps": list(dict.fromkeys(cell.step for cell in cells)), "tasks": [first, second]},
    )
