"""Which values of a table repeat an earlier one, and how many would do so by chance.

The chance follows from the resolution of a metric and the spread of its values: two seeds do not agree to 15 digits by
chance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import pdtrc

from ..tables.metrics import FRACTION, LIMITED, PERCENT, Values, find_resolution, recognise_metric
from ..tables.table import Cell, ResultTable, group_cells

RepeatKind = Literal["own", "seed", "arm"]
KINDS: tuple[RepeatKind, ...] = ("own", "seed", "arm")
"""A value may repeat the same run's earlier step, another seed or another arm; the first that applies counts."""
NEAR = 3.0
"""Values within so many spreads of each other could have been equal."""
SHARE = 0.5
"""Probability that two normal values are equal, in units of resolution/spread: 1/(2√π), rounded up for caution."""


@dataclass(frozen=True)
class Repeat:
    """A value that repeats an earlier one: its cell, and the earlier cell."""

    cell: Cell
    earlier: Cell
    kind: RepeatKind


@dataclass(frozen=True)
class Sighting:
    """A cell, the repeat that it is, if any, and the number of repeats of each kind expected by chance.

    rate: probability that two runs have the same value at the same step by chance.
    """

    cell: Cell
    repeat: Repeat | None
    expected: Mapping[RepeatKind, float]
    rate: float


def find_repeats(table: ResultTable, metric: str) -> Iterator[Sighting]:
    """Look for every value of a metric among the earlier ones."""
    cells = [cell for cell in table.values if cell.metric == metric]
    order = {step: number for number, step in enumerate(table.steps)}
    common, _ = find_resolution(metric, cells)
    for group in group_cells(cells, lambda cell: cell.group).values():
        # The evaluation sets of several tasks need not be of one size.
        resolution = max(common, find_resolution(metric, group)[0])
        chance = ChanceOfRepeats(group, resolution)
        earlier: dict[float | None, list[Cell]] = {}
        for cell in sorted(group, key=lambda cell: order[cell.step]):
            same = earlier.setdefault(cell.value, [])
            if is_informative(cell, has_steps=len(order) > 1):
                yield Sighting(cell, _find_nearest(cell, same), chance.expect(cell), chance.rate)
            same.append(cell)


def is_informative(cell: Cell, has_steps: bool) -> bool:
    """Tell whether an equal value elsewhere is evidence of a repeat.

    Many runs reach a perfect score or 0, and before training arms with the same initial weights agree.
    """
    limits = {0.0, FRACTION, PERCENT} if recognise_metric(cell.metric) in LIMITED else {0.0}
    return cell.value not in limits and not (cell.step == 0 and has_steps)


def _find_nearest(cell: Cell, same: Sequence[Cell]) -> Repeat | None:
    latest: dict[RepeatKind, Cell] = {}
    run, arm = cell.run, cell.arm
    for other in same:
        latest["own" if other.run == run else "seed" if other.arm == arm else "arm"] = other
    return next((Repeat(cell, latest[kind], kind) for kind in KINDS if kind in latest), None)


class ChanceOfRepeats:
    """How often values agree by chance: resolution over spread, for each value that is near."""

    def __init__(self, cells: Sequence[Cell], resolution: float) -> None:
        usual = 0.01 * float(np.median([abs(cell.number) for cell in cells])) or resolution
        by_seed = group_cells(cells, lambda cell: (cell.arm, cell.step)).values()
        distinct = [np.unique(_list_values(seeds)) for seeds in by_seed]
        spreads = [values.std(ddof=1) for values in distinct if len(values) > 1]
        by_run = group_cells(cells, lambda cell: cell.run)
        changes = [change for run in by_run.values() for change in _list_changes(run)]
        self.over_seeds = max(resolution, float(np.median(spreads)) if spreads else usual)
        # The last changes of a training run are its smallest.
        self.over_steps = max(resolution, float(np.quantile(changes, 0.1)) if changes else usual)
        self.rate = SHARE * resolution / self.over_seeds
        self.own_rate = SHARE * resolution / self.over_steps
        self.runs = {run: np.sort(_list_values(cells)) for run, cells in by_run.items()}
        by_arm = group_cells(cells, lambda cell: cell.arm)
        self.arms = {arm: np.sort(_list_values(cells)) for arm, cells in by_arm.items()}
        self.all = np.sort(_list_values(cells))

    def expect(self, cell: Cell) -> dict[RepeatKind, float]:
        """Return how many cells of each kind have a cell's value by chance."""
        own = _count_near(self.runs[cell.run], cell, self.over_steps) - 1
        nested = self.runs[cell.run], self.arms[cell.arm], self.all
        in_run, in_arm, in_all = (_count_near(values, cell, self.over_seeds) for values in nested)
        return {"own": own * self.own_rate, "seed": (in_arm - in_run) * self.rate, "arm": (in_all - in_arm) * self.rate}


def is_beyond_chance(sightings: Sequence[Sighting], odds: float) -> bool:
    """Tell whether some kind of repeat of some metric is more frequent than chance allows, with probability `odds`.

    Metrics are tested separately: chance repeats of a coarse metric must not hide those of a fine one.
    """
    for of_metric in group_cells(sightings, lambda sighting: sighting.cell.metric).values():
        for kind in KINDS:
            count = sum(sighting.repeat is not None and sighting.repeat.kind == kind for sighting in of_metric)
            expected = sum(sighting.expected[kind] for sighting in of_metric)
            if count and pdtrc(count - 1, expected) < odds:
                return True
    return False


def find_twins(sightings: Sequence[Sighting], odds: float) -> list[Repeat]:
    """Return the repeats between runs that agree step by step more often than chance allows."""
    by_run = group_cells(sightings, lambda sighting: sighting.cell.run)
    num_pairs = max(1, len(by_run) * (len(by_run) - 1) // 2)
    twins = []
    for of_run in by_run.values():
        repeats = [sighting.repeat for sighting in of_run if sighting.repeat is not None]
        same_step = [repeat for repeat in repeats if repeat.kind != "own" and repeat.cell.step == repeat.earlier.step]
        for shared in group_cells(same_step, lambda repeat: repeat.earlier.run).values():
            for metric in {repeat.cell.metric for repeat in shared}:
                count = sum(repeat.cell.metric == metric for repeat in shared)
                expected = sum(sighting.rate for sighting in of_run if sighting.cell.metric == metric)
                if pdtrc(count - 1, expected) < odds / num_pairs:
                    twins += shared
                    break
    return twins


def _list_values(cells: Sequence[Cell]) -> Values:
    return np.array([cell.number for cell in cells])


def _list_changes(run: Sequence[Cell]) -> list[float]:
    curve = [cell.number for cell in sorted(run, key=lambda cell: cell.step or 0.0)]
    return [abs(after - before) for before, after in pairwise(curve) if after != before]


def _count_near(values: Values, cell: Cell, width: float) -> int:
    low, high = np.searchsorted(values, [cell.number - NEAR * width, cell.number + NEAR * width])
    return int(high - low)
