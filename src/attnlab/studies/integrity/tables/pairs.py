"""Which values of a table are compared: those of the last step that both arms have, by group and metric.

A run with an empty cell, or with values at earlier steps only, counts as failed: what stopped it is unknown, and
without it only runs that finished would be compared.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .table import Cell, ResultTable, group_cells, order_step

Scores = dict[str, float | None]
"""The score of each seed; None if its run has none."""
LAST = 0.8
"""The last fifth of training begins at this share of its steps."""
NEAREST = 0.6
"""A curve without a value between this share and the end does not show the last fifth."""


@dataclass(frozen=True)
class ArmPair:
    """One arm and the baseline in one group and metric: their scores at `step`, the cells used, and whole curves."""

    group: str
    metric: str
    arm: str
    step: float | None
    baseline: Scores
    variant: Scores
    cells: tuple[Cell, ...]
    curves: tuple[Sequence[Cell], Sequence[Cell]]


def find_pairs(table: ResultTable, left_out: frozenset[Cell] = frozenset()) -> Iterator[ArmPair]:
    """Yield every arm with the baseline, by metric and group. left_out: cells that are neither scores nor failures."""
    by_arm = group_cells(table.cells, lambda cell: (cell.metric, cell.group, cell.arm))
    for metric in table.metrics:
        for group in table.groups:
            baseline = by_arm.get((metric, group, table.baseline), [])
            for arm in table.arms[1:]:
                variant = by_arm.get((metric, group, arm), [])
                if baseline and variant:
                    yield _make_pair(arm, baseline, variant, left_out)


def _make_pair(arm: str, baseline: Sequence[Cell], variant: Sequence[Cell], excluded: frozenset[Cell]) -> ArmPair:
    both, curves = [*baseline, *variant], (baseline, variant)
    runs = group_cells(both, lambda cell: cell.run).values()
    has_curves = any(len({cell.step for cell in run}) > 1 for run in runs)
    usable = [{cell.step for cell in side if cell.value is not None and cell not in excluded} for side in curves]
    step = max(usable[0] & usable[1] or usable[0] | usable[1] or {cell.step for cell in both}, key=order_step)
    # Rows that give each run's own last step, as with early stopping, are results and no curve.
    chosen = {cell.run: cell for cell in both if cell.step == step or not has_curves}
    first = baseline[0]
    scores: dict[str, Scores] = {first.arm: {}, arm: {}}
    for cell in both:
        last = chosen.get(cell.run)
        if last is None or last not in excluded:
            scores[cell.arm][cell.seed] = None if last is None else last.value
    used = tuple(cell for cell in both if (cell.step == step or not has_curves) and cell not in excluded)
    last_step = step if has_curves else None
    return ArmPair(first.group, first.metric, arm, last_step, scores[first.arm], scores[arm], used, curves)


def measure_late_gain(cells: Sequence[Cell], end: float, is_log: bool) -> float | None:
    """Return the mean increase of an arm's runs in the last fifth of the steps up to `end`; None if not recorded.

    The value at four fifths is interpolated. is_log: values are perplexities, and the increase is one of logarithms.
    """
    curves: dict[str, dict[float, float]] = {}
    for cell in cells:
        is_shown = cell.value is not None and (cell.value > 0 or not is_log)
        if is_shown and cell.step is not None and 0 <= cell.step <= end:
            curves.setdefault(cell.seed, {})[cell.step] = math.log(cell.number) if is_log else cell.number
    gains = [gain for curve in curves.values() if (gain := _measure_gain(curve, end)) is not None]
    return sum(gains) / len(gains) if gains else None


def _measure_gain(curve: Mapping[float, float], end: float) -> float | None:
    """Return the increase of one run between four fifths of the steps and the end."""
    middle = LAST * end
    before = max((step for step in curve if step <= middle), default=None)
    if end not in curve or before is None or not any(NEAREST * end <= step < end for step in curve):
        return None
    after = min(step for step in curve if step >= middle)
    share = 0.0 if after == before else (middle - before) / (after - before)
    return curve[end] - (curve[before] + share * (curve[after] - curve[before]))
