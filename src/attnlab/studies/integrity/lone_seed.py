"""A spread that comes from one seed: without it the SD is much smaller, and normal seeds rarely have such an outlier.

Grubbs' test (1950) of the seed farthest from the median, corrected for all arms, groups and metrics of the last step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from .finding import IntegrityFinding, IntegrityKind
from .resolution import find_resolution
from .table import Cell, ResultTable, group_cells, show_step, value_of

FEWEST = 4
"""With fewer seeds an outlier cannot be identified: of three, two are always closer to each other."""
ODDS = 2e-3
"""False-positive rate for a table of normal seeds."""
MANY = 3.0
"""The SD must be this many times the SD without the seed."""


def check_lone_seed(table: ResultTable, step: float | None) -> Iterator[IntegrityFinding]:
    """Examine the seeds of every arm, group and metric at one step."""
    cells = [cell for cell in table.at(step) if cell.value is not None]
    samples = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.metric))
    enough = [sample for sample in samples.values() if len(sample) >= FEWEST]
    by_metric = group_cells(table.values, lambda cell: cell.metric)
    steps = {metric: find_resolution(metric, of_metric).step for metric, of_metric in by_metric.items()}
    for sample in enough:
        yield from _lone(sample, steps[sample[0].metric], ODDS / len(enough))


def _lone(sample: Sequence[Cell], resolution: float, odds: float) -> Iterator[IntegrityFinding]:
    values = np.array([value_of(cell) for cell in sample])
    place = int(np.argmax(np.abs(values - np.median(values))))
    others = np.delete(values, place)
    # Values that are equal after rounding may still differ by less than the rounding.
    spread = max(float(others.std(ddof=1)), resolution / math.sqrt(12))
    cell, sd = sample[place], float(values.std(ddof=1))
    # Among many seeds an outlier need not determine the SD.
    if sd < MANY * spread or outlier_p(value_of(cell), float(others.mean()), spread, len(values)) >= odds:
        return
    yield IntegrityFinding(
        IntegrityKind.SPREAD_OF_ONE_SEED,
        f"{' '.join(filter(None, (cell.arm, cell.group, cell.metric)))} at {show_step(cell.step)}: the SD of {sd:.3g} "
        f"comes from seed {cell.seed} ({cell.text}); the SD of the other {len(others)} is {others.std(ddof=1):.3g}",
        places=(cell.place,),
        data={"seed": cell.seed, "sd": sd, "sd_without": float(others.std(ddof=1))},
    )


def outlier_p(value: float, mean: float, sd: float, n: int) -> float:
    """Return the probability that the farthest of n normal seeds is so far from the mean of the others."""
    t = abs(value - mean) / (sd * math.sqrt(n / (n - 1)))
    return min(1.0, n * float(2 * stats.t.sf(t, n - 2)))
