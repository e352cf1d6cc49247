"""Arms with the means and the SDs of another arm in all tasks.

The SD of a mean over n seeds is s/√n, that of s is about s/√(2(n − 1)). At least a quarter of either variance is taken
to be of one task and arm, so that two values are rounded to the same multiple of r with probability at most erf(r/σ).
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from scipy.special import erf

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import count_decimals, find_resolution
from ..tables.table import Cell, ResultTable, group_cells, join_words

MIN_TASKS = 2
USUAL_SEEDS = 10
"""Where the number of seeds is not known, many make equal values more probable."""
FAULT_ODDS, NOTE_ODDS = 1e-4, 0.05
"""A fault or a note if chance produces such a pair of arms in a smaller share of tables."""


def check_copied_means(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find pairs of arms whose means and SDs are equal in every task that both have."""
    cells = [cell for cell in table.values if cell.is_mean and cell.sd]
    tasks = group_cells(cells, lambda cell: (cell.metric, cell.group, cell.step))
    resolutions = {task: find_resolution(task[0], of_task)[0] for task, of_task in tasks.items()}
    arms = {
        arm: {(cell.metric, cell.group, cell.step): cell for cell in of_arm}
        for arm, of_arm in group_cells(cells, lambda cell: cell.arm).items()
    }
    num_pairs = len(arms) * (len(arms) - 1) // 2
    for first, second in combinations(arms, 2):
        shared = [task for task in arms[second] if task in arms[first]]
        pairs = [(arms[second][task], arms[first][task]) for task in shared]
        if len(pairs) < MIN_TASKS or not all((one.number, one.sd) == (other.number, other.sd) for one, other in pairs):
            continue
        chance = float(num_pairs)
        for task in shared:
            chance *= _bound_chance(arms[second][task], resolutions[task])
        if chance < NOTE_ODDS:
            yield _report(pairs, chance < FAULT_ODDS)


def _bound_chance(cell: Cell, resolution: float) -> float:
    """Bound the probability that another arm has the same mean and SD."""
    sd, num_seeds = cell.sd or 0.0, max(cell.num_seeds or USUAL_SEEDS, 2)
    last_digit = 10.0 ** -count_decimals(cell.sd_text or f"{sd:g}")
    # The mean of n accuracies has n times as many possible values.
    step = max(10.0 ** -count_decimals(cell.text), resolution / num_seeds)
    rate_of_mean = erf(step * math.sqrt(num_seeds) / sd)
    rate_of_sd = erf(last_digit * math.sqrt(2 * (num_seeds - 1)) / sd)
    return float(rate_of_mean * rate_of_sd)


def _report(pairs: Sequence[tuple[Cell, Cell]], is_fault: bool) -> IntegrityFinding:
    (cell, other), num = pairs[0], len(pairs)
    shown = list_first([f"{join_words(it.group, it.metric)} {it.text}" for it, _ in pairs], 2)
    reason = "At this spread and precision, chance produces such a pair of arms in less than one of 10,000 tables"
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{cell.arm} has the means and the SDs of {other.arm} in all {num} tasks ({shown}). "
        f"{reason if is_fault else 'They may be copies, or a coincidence'}",
        is_fault=is_fault,
        places=tuple(it.place for it, _ in pairs),
        data={
            "steps": list(dict.fromkeys(it.step for it, _ in pairs)),
            "repeats": [{"cell": it.place, "repeats": earlier.place, "kind": "arm"} for it, earlier in pairs],
        },
    )
