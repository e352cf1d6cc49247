"""Which values of a table repeat an earlier one, and how many would do so by chance.

The chance follows from the resolution of a metric and the spread of its values: two seeds do not agree to 15 digits by
chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .metrics import FRACTION, LIMITED, PERCENT, kind_of
from .resolution import find_resolution
from .table import Cell, ResultTable, group_cells, value_of

Numbers = NDArray[np.float64]
Kind = Literal["own", "seed", "arm"]
KINDS: tuple[Kind, ...] = ("own", "seed", "arm")
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
    kind: Kind

    @property
    def is_abreast(self) -> bool:
        """Whether two runs have the value at the same step."""
        return self.kind != "own" and self.cell.step == self.earlier.step


@dataclass(frozen=True)
class Sighting:
    """A cell, the repeat that it is, if any, and the number of repeats of each kind expected by chance.

    rate: probability that two runs have the same value at the same step by chance.
    """

    cell: Cell
    repeat: Repeat | None
    expected: Mapping[Kind, float]
    rate: float


def look_up(table: ResultTable, metric: str) -> Iterator[Sighting]:
    """Look for every value of a metric among the earlier ones."""
    cells = [cell for cell in table.values if cell.metric == metric]
    resolution = find_resolution(metric, cells).step
    limits = {0.0, FRACTION, PERCENT} if kind_of(metric) in LIMITED else {0.0}
    order = {step: number for number, step in enumerate(table.steps)}
    for group in group_cells(cells, lambda cell: cell.group).values():
        chance = Chance(group, resolution)
        earlier: dict[float | None, list[Cell]] = {}
        for cell in sorted(group, key=lambda cell: order[cell.step]):
            same = earlier.setdefault(cell.value, [])
            # Many runs reach a perfect score or 0, and before training arms with the same initial weights agree.
            if cell.value not in limits and not (cell.step == 0 and len(order) > 1):
                yield Sighting(cell, _nearest(cell, same), chance.expect(cell), chance.rate)
            same.append(cell)


def _nearest(cell: Cell, same: Sequence[Cell]) -> Repeat | None:
    found: dict[Kind, Cell] = {}
    for other in same:
        found["own" if other.run == cell.run else "seed" if other.arm == cell.arm else "arm"] = other
    return next((Repeat(cell, found[kind], kind) for kind in KINDS if kind in found), None)


class Chance:
    """How often values agree by chance: resolution over spread, for each value that is near."""

    def __init__(self, cells: Sequence[Cell], resolution: float) -> None:
        usual = 0.01 * float(np.median([abs(value_of(cell)) for cell in cells])) or resolution
        by_seed = group_cells(cells, lambda cell: (cell.arm, cell.step)).values()
        spreads = [np.std(distinct, ddof=1) for seeds in by_seed if len(distinct := _distinct(seeds)) > 1]
        by_run = group_cells(cells, lambda cell: cell.run)
        changes = [change for run in by_run.values() for change in _changes(run)]
        self.resolution = resolution
        self.over_seeds = max(resolution, float(np.median(spreads)) if spreads else usual)
        self.rate = SHARE * resolution / self.over_seeds
        # The last changes of a training run are its smallest.
        self.over_steps = max(resolution, float(np.quantile(changes, 0.1)) if changes else usual)
        self.runs = {run: _sorted(found) for run, found in by_run.items()}
        self.arms = {arm: _sorted(found) for arm, found in group_cells(cells, lambda cell: cell.arm).items()}
        self.all = _sorted(cells)

    def expect(self, cell: Cell) -> dict[Kind, float]:
        """Return how many cells of each kind have a cell's value by chance."""
        own = _near(self.runs[cell.run], cell, self.over_steps) - 1
        in_run, in_arm = (_near(values, cell, self.over_seeds) for values in (self.runs[cell.run], self.arms[cell.arm]))
        in_all = _near(self.all, cell, self.over_seeds)
        of_own = SHARE * self.resolution / self.over_steps
        return {"own": own * of_own, "seed": (in_arm - in_run) * self.rate, "arm": (in_all - in_arm) * self.rate}


def is_beyond_chance(sightings: Sequence[Sighting], odds: float) -> bool:
    """Tell whether some kind of repeat of some metric is more frequent than chance allows, with probability `odds`.

    Metrics are tested separately: chance repeats of a coarse metric must not hide those of a fine one.
    """
    by_metric: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        by_metric.setdefault(sighting.cell.metric, []).append(sighting)
    for found in by_metric.values():
        for kind in KINDS:
            count = sum(one.repeat is not None and one.repeat.kind == kind for one in found)
            expected = sum(one.expected[kind] for one in found)
            if count and stats.poisson.sf(count - 1, expected) < odds:
                return True
    return False


def find_twins(sightings: Sequence[Sighting], odds: float) -> list[Repeat]:
    """Return the repeats between runs that agree step by step more often than chance allows."""
    by_run: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in sightings:
        by_run.setdefault(sighting.cell.run, []).append(sighting)
    num_pairs = max(1, len(by_run) * (len(by_run) - 1) // 2)
    found = []
    for mine in by_run.values():
        together = [one.repeat for one in mine if one.repeat is not None and one.repeat.is_abreast]
        for other in {repeat.earlier.run for repeat in together}:
            shared = [repeat for repeat in together if repeat.earlier.run == other]
            for metric in {repeat.cell.metric for repeat in shared}:
                count = sum(repeat.cell.metric == metric for repeat in shared)
                expected = sum(one.rate for one in mine if one.cell.metric == metric)
                if stats.poisson.sf(count - 1, expected) < odds / num_pairs:
                    found += shared
                    break
    return found


def _distinct(cells: Sequence[Cell]) -> list[float]:
    return sorted({value_of(cell) for cell in cells})


def _changes(run: Sequence[Cell]) -> list[float]:
    path = [value_of(cell) for cell in sorted(run, key=lambda cell: cell.step or 0.0)]
    return [abs(after - before) for before, after in pairwise(path) if after != before]


def _sorted(cells: Sequence[Cell]) -> Numbers:
    return np.sort(np.array([value_of(cell) for cell in cells]))


def _near(values: Numbers, cell: Cell, width: float) -> int:
    low, high = np.searchsorted(values, [value_of(cell) - NEAR * width, value_of(cell) + NEAR * width])
    return int(high - low)
