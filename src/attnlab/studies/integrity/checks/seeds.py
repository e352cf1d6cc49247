"""Runs without a score, and seeds that are far from the others of their arm.

Empty cells, NaN, `diverged` and the like count as failed runs. Outliers: Grubbs' test (1950) of the seed farthest from
the median, corrected for all arms, groups and metrics of the last step.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import stdtr

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import find_resolution
from ..tables.pairs import find_pairs
from ..tables.table import Cell, ResultTable, group_cells, join_words, show_step

MIN_SEEDS = 4
"""With fewer seeds an outlier cannot be identified: of three, two are always closer to each other."""
ODDS = 2e-3
"""False-positive rate for a table of normal seeds."""
MANY = 3.0
"""The SD must be this many times the SD without the seed."""


def check_missing(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Note which runs count as failed, since an empty cell may also be a run that was never made."""
    missing: dict[str, Cell | None] = {}
    for pair in find_pairs(table):
        cells = {(cell.arm, cell.seed): cell for cell in pair.cells}
        for arm, scores in ((table.baseline, pair.baseline), (pair.arm, pair.variant)):
            for seed, score in scores.items():
                if score is None:
                    title = f"{join_words(arm, pair.group, pair.metric)} seed {seed}"
                    missing[title] = cells.get((arm, seed))
    if missing:
        shown = [f"{title} ({_show_reason(cell)})" for title, cell in missing.items()]
        yield IntegrityFinding(
            IntegrityKind.MISSING_SCORES,
            f"{list_first(shown)}; each counts as a run that failed. If a run was never started, remove it from the "
            "table",
            is_fault=False,
            places=tuple(cell.place for cell in missing.values() if cell is not None),
            data={"num_missing": len(missing)},
        )


def _show_reason(cell: Cell | None) -> str:
    if cell is None:
        return "ends at an earlier step"
    return f"'{cell.text}', {cell.place}" if cell.text else f"empty, {cell.place}"


def check_lone_seed(table: ResultTable, step: float | None) -> Iterator[IntegrityFinding]:
    """Examine the seeds of every arm, group and metric at one step."""
    cells = [cell for cell in table.values if cell.step == step]
    samples = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.metric))
    enough = [sample for sample in samples.values() if len(sample) >= MIN_SEEDS]
    by_metric = group_cells(table.values, lambda cell: cell.metric)
    resolutions = {metric: find_resolution(metric, cells)[0] for metric, cells in by_metric.items()}
    for sample in enough:
        yield from _find_lone_seed(sample, resolutions[sample[0].metric], ODDS / len(enough))


def _find_lone_seed(sample: Sequence[Cell], resolution: float, odds: float) -> Iterator[IntegrityFinding]:
    values = np.array([cell.number for cell in sample])
    place = int(np.argmax(np.abs(values - np.median(values))))
    others = np.delete(values, place)
    cell, sd, sd_without = sample[place], float(values.std(ddof=1)), float(others.std(ddof=1))
    # Values that are equal after rounding may still differ by less than the rounding.
    spread = max(sd_without, resolution / math.sqrt(12))
    # The probability that the farthest of n normal seeds is so far from the mean of the others.
    n, distance = len(values), abs(cell.number - float(others.mean()))
    p = min(1.0, n * float(2 * stdtr(n - 2, -distance / (spread * math.sqrt(n / (n - 1))))))
    where = "" if cell.step is None else f" at {show_step(cell.step)}"
    # Among many seeds an outlier need not determine the SD.
    if sd < MANY * spread or p >= odds:
        return
    yield IntegrityFinding(
        IntegrityKind.OUTLYING_SEED,
        f"{cell.title}{where}: seed {cell.seed} is {cell.text}, far from the other {len(others)} seeds, whose mean is "
        f"{float(others.mean()):.4g} with an SD of {sd_without:.2g}. With it the SD is {sd:.2g}. Look for "
        "a typing error or a failed run; do not leave the seed out only because it is far",
        places=(cell.place,),
        data={"seed": cell.seed, "sd": sd, "sd_without": sd_without},
    )
