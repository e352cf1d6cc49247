"""Seeds that have the values of another seed in all or nearly all arms of a task, as from a column pasted twice.

Arms may share initial weights and data order with a seed, so that a seed is good in all of them. The chance is that of
two seeds for which what arms share is equal: an arm's values with the SD τ of its own are then rounded to the same
multiple of r with probability at most erf(r / 2τ). τ² is a quarter of the variance that is left after the mean of all
arms, each in units of its SD, is removed.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import erf

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import Values, find_resolution
from ..tables.table import Cell, ResultTable, group_cells, join_words
from .copied_runs import MAD_TO_SD, MAX_NAMED, MIN_SHARE, NOTE_ODDS, RunCopy, RunMatrix, describe_copy

FAULT_ODDS = 1e-3
"""A pair of seeds is a fault if chance produces such a pair in a smaller share of tables."""
MIN_ARMS = 3
"""With fewer arms equal seeds are a coincidence too often."""
MIN_SEEDS = 4
"""With fewer seeds the SD without the copied one is unknown."""


def report_copied_seeds(table: ResultTable, known: Collection[str]) -> Iterator[IntegrityFinding]:
    """Report seeds with the values of another, faults and notes apart. known: places that are reported already."""
    if not table.steps:
        return
    cells = [cell for cell in table.values if cell.step == table.steps[-1] and not cell.is_mean]
    blocks = group_cells(cells, lambda cell: (cell.metric, cell.group))
    for (metric, group), block in blocks.items():
        copies = [copy for copy in find_copied_seeds(block, len(blocks)) if not _is_known(copy, known)]
        for is_fault in (True, False):
            of_kind = [copy for copy in copies if _is_fault(copy) == is_fault]
            if of_kind:
                yield _report(of_kind, join_words(group, metric), is_fault)


def find_copied_seeds(cells: Sequence[Cell], num_blocks: int = 1) -> list[RunCopy]:
    """Find pairs of seeds of one task that chance rarely makes equal. num_blocks: the number of tasks and metrics."""
    # A seed is a run, and an arm is its task.
    matrix = RunMatrix([replace(cell, arm="", group=cell.arm) for cell in cells])
    if len(matrix.tasks) < MIN_ARMS or len(matrix.runs) < MIN_SEEDS:
        return []
    resolution, num_pairs = find_resolution(cells[0].metric, cells)[0], math.comb(len(matrix.runs), 2) * num_blocks
    copies = []
    for first, second in matrix.find_equal_pairs():
        chance = min(1.0, _bound_chance(matrix, first, second, resolution) * num_pairs)
        if chance < NOTE_ODDS:
            copies.append(describe_copy(matrix, first, second, chance))
    return copies


def _bound_chance(matrix: RunMatrix, first: int, second: int, resolution: float) -> float:
    """Bound the probability that two seeds agree in as many arms as two rows do."""
    pair = matrix.numbers[[first, second]]
    is_used = ~np.isnan(pair).any(axis=0) & ~matrix.is_limit[[first, second]].any(axis=0)
    is_used &= np.nanstd(matrix.numbers, axis=0) > 0
    arms = np.flatnonzero(is_used)
    num_equal = int((pair[0] == pair[1])[arms].sum())
    if num_equal < max(MIN_ARMS, MIN_SHARE * len(arms)):
        return 1.0
    others = np.delete(matrix.numbers, second, axis=0)[:, arms]
    others = others[~np.isnan(others).any(axis=1)]
    if len(others) < MIN_SEEDS - 1:
        return 1.0
    chances = np.ones(1)
    for spread, values in zip(_measure_own_spreads(others), others.T, strict=True):
        rate = float(erf(resolution / (2 * spread))) if spread > 0 else 1.0
        rate = max(rate, _share_of_equal_pairs(values))
        chances = np.convolve(chances, [1 - rate, rate])
    return float(chances[num_equal:].sum())


def _measure_own_spreads(numbers: Values) -> Values:
    """Return half of the SD over seeds that each arm has without what arms share. numbers: [seeds arms]."""
    spreads = _measure_spreads(numbers)
    is_varied = spreads > 0
    scaled = (numbers - numbers.mean(axis=0))[:, is_varied] / spreads[is_varied]
    num_seeds, num_arms = scaled.shape
    if num_arms < MIN_ARMS:
        return np.zeros_like(spreads)
    own = scaled - np.mean(scaled, axis=1, keepdims=True)
    own -= np.mean(own, axis=0)
    # Seeds and arms take degrees of freedom. An arm varies on its own at most as much as in all.
    freedom = (1 - 1 / num_seeds) * (1 - 1 / num_arms)
    variance = np.mean(own**2), MAD_TO_SD**2 * np.median(np.abs(own)) ** 2
    own_spreads: Values = spreads / 2 * math.sqrt(min(1.0, float(min(variance)) / freedom))
    return own_spreads


def _measure_spreads(numbers: Values) -> Values:
    """Return the SD of each arm, or a smaller robust one, so that failed runs do not make equal values unlikely."""
    robust = MAD_TO_SD * np.median(np.abs(numbers - np.median(numbers, axis=0)), axis=0)
    spreads: Values = np.minimum(np.std(numbers, axis=0, ddof=1), robust)
    return spreads


def _share_of_equal_pairs(values: Values) -> float:
    """Return the share of pairs of seeds that agree."""
    counts = np.unique(values, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(values) * (len(values) - 1)))


def _is_fault(copy: RunCopy) -> bool:
    return copy.chance < FAULT_ODDS and not copy.may_have_failed


def _is_known(copy: RunCopy, known: Collection[str]) -> bool:
    return {cell.place for cell, _ in copy.equals} <= {*known}


def _report(copies: Sequence[RunCopy], task: str, is_fault: bool) -> IntegrityFinding:
    sentences = []
    for copy in copies:
        num = len(copy.equals)
        arms = f"all {num} arms" if num == copy.num_shared else f"{num} of {copy.num_shared} arms"
        shown = list_first([f"{cell.group} {cell.text}" for cell, _ in copy.equals], MAX_NAMED)
        sentences.append(f"seed {copy.second[1]} has the {task} of seed {copy.first[1]} in {arms} ({shown})")
    reason = "At this spread and precision, chance produces such a pair of seeds in less than one of 1000 tables"
    if not is_fault:
        reason = "They may be copies, or a coincidence"
        reason += " or runs that failed in the same way" if any(copy.may_have_failed for copy in copies) else ""
    equals = [pair for copy in copies for pair in copy.equals]
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{list_first(sentences, MAX_NAMED)}. {reason}",
        is_fault=is_fault,
        places=tuple(dict.fromkeys(cell.place for cell, _ in equals)),
        data={
            "steps": list(dict.fromkeys(cell.step for cell, _ in equals)),
            "repeats": [{"cell": cell.place, "repeats": other.place, "kind": "seed"} for cell, other in equals],
        },
    )
