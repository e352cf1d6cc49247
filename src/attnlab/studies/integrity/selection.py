"""Which values of a table are compared: those of the last step that both arms have, by group and metric.

A run with an empty cell, or with values at earlier steps only, counts as failed: what stopped it is unknown, and
without it only runs that finished would be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .table import Cell, ResultTable, group_cells

Scores = dict[str, float | None]
"""The score of each seed; None if its run has none."""


@dataclass(frozen=True)
class Pair:
    """One arm and the baseline in one group and metric: their scores at `step`, the cells used, and whole curves."""

    group: str
    metric: str
    arm: str
    step: float | None
    baseline: Scores
    variant: Scores
    cells: tuple[Cell, ...]
    curves: tuple[tuple[Cell, ...], tuple[Cell, ...]]


def find_pairs(table: ResultTable, left_out: Collection[Cell] = ()) -> Iterator[Pair]:
    """Yield every arm with the baseline, by metric and group. left_out: cells that are neither scores nor failures."""
    by_arm = group_cells(table.cells, lambda cell: (cell.metric, cell.group, cell.arm))
    excluded = set(left_out)
    for metric in table.metrics:
        for group in table.groups:
            baseline = by_arm.get((metric, group, table.baseline), [])
            for arm in table.arms[1:]:
                variant = by_arm.get((metric, group, arm), [])
                if baseline and variant:
                    yield _make_pair(arm, baseline, variant, excluded)


def _make_pair(arm: str, baseline: Sequence[Cell], variant: Sequence[Cell], excluded: set[Cell]) -> Pair:
    both, has_curves = (*baseline, *variant), _has_curves([*baseline, *variant])
    usable = [
        {cell.step for cell in side if cell.value is not None and cell not in excluded} for side in (baseline, variant)
    ]
    common = usable[0] & usable[1] or usable[0] | usable[1] or {cell.step for cell in both}
    step = max(common, key=lambda step: -1.0 if step is None else step)
    # Rows that give each run's own last step, as with early stopping, are results and no curve.
    chosen = [cell for cell in both if cell.step == step or not has_curves]
    used = tuple(cell for cell in chosen if cell not in excluded)
    scores = [_read_scores(side, chosen, excluded) for side in (baseline, variant)]
    group, metric = baseline[0].group, baseline[0].metric
    return Pair(
        group, metric, arm, step if has_curves else None, scores[0], scores[1], used, (tuple(baseline), tuple(variant))
    )


def _has_curves(cells: Sequence[Cell]) -> bool:
    """Tell whether any run has values at several steps."""
    return any(len({cell.step for cell in run}) > 1 for run in group_cells(cells, lambda cell: cell.run).values())


def _read_scores(side: Sequence[Cell], chosen: Sequence[Cell], excluded: set[Cell]) -> Scores:
    values = {cell.run: cell for cell in chosen}
    scores: Scores = {}
    for cell in side:
        own = values.get(cell.run)
        if own is None or own not in excluded:
            scores[cell.seed] = None if own is None else own.value
    return scores
