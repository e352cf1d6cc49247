"""Which values stood in a table before, and how many would by chance.

Chance is reckoned from how fine a metric is and how far its values spread: two seeds agree to 15 digits by none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .metrics import scale_of
from .resolution import find_resolution
from .table import Cell, ResultTable, grouped, value_of

Numbers = NDArray[np.float64]
Kind = Literal["own", "seed", "arm"]
KINDS: tuple[Kind, ...] = ("own", "seed", "arm")
"""A value may be the same run's from an earlier step, another seed's, or another arm's; the nearest is meant."""
NEAR = 3.0
"""Values within so many spreads of each other could have been equal."""
SHARE = 0.5
"""How often two normal values are equal, in units of fineness over spread: 1/(2√π), and something for caution."""


@dataclass(frozen=True)
class Repeat:
    """A value that stood before: whose it is, and whose it was."""

    cell: Cell
    earlier: Cell
    kind: Kind

    @property
    def is_abreast(self) -> bool:
        """Whether two runs have the value at the same step."""
        return self.kind != "own" and self.cell.step == self.earlier.step


@dataclass(frozen=True)
class Sighting:
    """A cell that was looked up: the repeat that it is, if any, and how many of each kind it is by chance.

    rate: how often one run has another's value at the same step, by chance.
    """

    cell: Cell
    repeat: Repeat | None
    expected: Mapping[Kind, float]
    rate: float


def look_up(table: ResultTable, metric: str) -> Iterator[Sighting]:
    """Look up every value of a metric among those before it."""
    cells = [cell for cell in table.values if cell.metric == metric]
    fineness = find_resolution(metric, cells).step
    limits = {0.0, scale_of(metric, [value_of(cell) for cell in cells]) or 0.0}
    order = {step: number for number, step in enumerate(table.steps)}
    for group in grouped(cells, lambda cell: cell.group).values():
        chance = Chance(group, fineness)
        earlier: dict[float | None, list[Cell]] = {}
        for cell in sorted(group, key=lambda cell: order[cell.step]):
            same = earlier.setdefault(cell.value, [])
            # What a metric cannot pass, a perfect score or none at all, many runs reach; before the first step of
            # training, arms that begin alike are alike.
            if cell.value not in limits and not (cell.step == 0 and len(order) > 1):
                yield Sighting(cell, _nearest(cell, same), chance.expect(cell), chance.rate)
            same.append(cell)


def _nearest(cell: Cell, same: Sequence[Cell]) -> Repeat | None:
    found: dict[Kind, Cell] = {}
    for other in same:
        found["own" if other.run == cell.run else "seed" if other.arm == cell.arm else "arm"] = other
    return next((Repeat(cell, found[kind], kind) for kind in KINDS if kind in found), None)


class Chance:
    """How often values agree by chance: as fineness is to spread, for each value that is near."""

    def __init__(self, cells: Sequence[Cell], fineness: float) -> None:
        usual = 0.01 * float(np.median([abs(value_of(cell)) for cell in cells])) or fineness
        by_seed = grouped(cells, lambda cell: (cell.arm, cell.step)).values()
        spreads = [np.std(distinct, ddof=1) for seeds in by_seed if len(distinct := _distinct(seeds)) > 1]
        by_run = grouped(cells, lambda cell: cell.run)
        changes = [change for run in by_run.values() for change in _changes(run)]
        self.fineness = fineness
        self.over_seeds = max(fineness, float(np.median(spreads)) if spreads else usual)
        self.rate = SHARE * fineness / self.over_seeds
        # The last changes of a training run are its smallest.
        self.over_steps = max(fineness, float(np.quantile(changes, 0.1)) if changes else usual)
        self.runs = {run: _sorted(found) for run, found in by_run.items()}
        self.arms = {arm: _sorted(found) for arm, found in grouped(cells, lambda cell: cell.arm).items()}
        self.all = _sorted(cells)

    def expect(self, cell: Cell) -> dict[Kind, float]:
        """Return how many cells of each kind have a cell's value by chance."""
        own = _near(self.runs[cell.run], cell, self.over_steps) - 1
        in_run, in_arm = (_near(values, cell, self.over_seeds) for values in (self.runs[cell.run], self.arms[cell.arm]))
        in_all = _near(self.all, cell, self.over_seeds)
        of_own = SHARE * self.fineness / self.over_steps
        return {"own": own * of_own, "seed": (in_arm - in_run) * self.rate, "arm": (in_all - in_arm) * self.rate}


def is_beyond_chance(sightings: Sequence[Sighting], odds: float) -> bool:
    """Tell whether there are more repeats of some kind and metric than chance would make once in 1/odds tables.

    Metrics are looked at apart: a coarse one repeats by chance, and must not hide a fine one that cannot.
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
    """Return the repeats of runs that have another run's values step by step, more often than chance allows."""
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
