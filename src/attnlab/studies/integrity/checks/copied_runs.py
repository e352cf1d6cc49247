"""Runs, each an arm and a seed, that have the values of another run in all or nearly all tasks and metrics.

Two values with the independent SD τ are rounded to the same multiple of r with probability at most erf(r / 2τ). What
runs of one arm, runs of one seed and tasks of one run have in common is removed before τ is estimated: a good seed is
good in all tasks. The number of equal values is then bounded by a sum of Bernoulli variables, times the pairs of runs.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erf, stdtr
from scipy.stats import rankdata

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import Values, find_resolution
from ..tables.table import Cell, ResultTable, group_cells, join_words
from .coincidence import is_informative

FAULT_ODDS, NOTE_ODDS = 1e-4, 0.05
"""A pair of runs is a fault or a note if chance produces such a pair in a smaller share of tables."""
MIN_EQUAL = 2
MIN_SHARE = 0.75
"""Nearly all: so large a share of the values of two runs is equal."""
SAME_ORDER = 0.95
"""Metrics whose ranks are so correlated, such as loss and perplexity, count once."""
MIN_DEGREES = 2
"""With fewer degrees of freedom the SD of what runs do not share is unknown."""
FAR = 5.0
"""Values so many robust SDs away from the other runs may be those of failed runs, which agree by nature."""
MAX_NAMED = 4
MAD_TO_SD = 1.4826
"""The SD of normal values over their median absolute deviation."""
RunKey = tuple[str, str]
"""Arm and seed."""
TaskKey = tuple[str, str]
"""Metric and group."""


@dataclass(frozen=True)
class RunCopy:
    """Two runs with equal values. equals: cells of the second, each with that of the first.

    num_shared: values that both have. chance: bound of the share of tables in which chance produces such a pair.
    """

    first: RunKey
    second: RunKey
    equals: tuple[tuple[Cell, Cell], ...]
    num_shared: int
    chance: float
    may_have_failed: bool

    @property
    def is_certain(self) -> bool:
        """Whether chance and failed runs are excluded."""
        return self.chance < FAULT_ODDS and not self.may_have_failed

    @property
    def sentence(self) -> str:
        """Whose values the second run has, in words."""
        return f"{_name(self.second)} has {_count(len(self.equals), self.num_shared)} of {_name(self.first)}"


class RunMatrix:
    """The values of runs by task. numbers: [runs tasks], NaN where a run has none."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = {(cell.arm, cell.seed): {} for cell in cells}  # type: dict[RunKey, dict[TaskKey, Cell]]
        for cell in cells:
            self.cells[cell.arm, cell.seed][cell.metric, cell.group] = cell
        self.runs = list(self.cells)
        self.tasks = list(dict.fromkeys((cell.metric, cell.group) for cell in cells))
        columns = {task: number for number, task in enumerate(self.tasks)}
        self.numbers = np.full((len(self.runs), len(self.tasks)), np.nan)
        for row, of_run in enumerate(self.cells.values()):
            for task, cell in of_run.items():
                self.numbers[row, columns[task]] = cell.number

    @cached_property
    def is_limit(self) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
        """Tell which values are 0 or the best possible score, which many runs reach."""
        limits = np.zeros(self.numbers.shape, dtype=bool)
        for row, of_run in enumerate(self.cells.values()):
            for column, task in enumerate(self.tasks):
                limits[row, column] = task in of_run and not is_informative(of_run[task], has_steps=False)
        return limits

    def find_equal_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of two runs of which nearly all values are equal."""
        for row in range(1, len(self.runs)):
            earlier = self.numbers[:row]
            num_equal = (earlier == self.numbers[row]).sum(axis=1)
            num_shared = (~np.isnan(earlier) & ~np.isnan(self.numbers[row])).sum(axis=1)
            for other in np.flatnonzero((num_equal >= MIN_EQUAL) & (num_equal >= MIN_SHARE * num_shared)):
                yield int(other), row


class ChanceOfEqual:
    """How often two runs of a matrix agree in each task by chance. Runs of one seed in two arms may be alike."""

    def __init__(self, matrix: RunMatrix) -> None:
        self.matrix = matrix
        is_complete = ~np.isnan(matrix.numbers).any(axis=1)
        numbers = matrix.numbers[is_complete]
        runs = [run for run, keep in zip(matrix.runs, is_complete, strict=True) if keep]
        self.representatives = _find_representatives(numbers) if len(runs) > MIN_DEGREES else []
        self.spreads = {
            has_same_seed: _measure_own_spreads(numbers, _design(runs, has_same_seed), self.representatives)
            for has_same_seed in (False, True)
        }

    def bound(self, first: int, second: int) -> float:
        """Bound the probability that any two runs agree in as many tasks as two rows do."""
        rows, runs = self.matrix.numbers[[first, second]], self.matrix.runs
        has_same_seed = runs[first][1] == runs[second][1]
        is_used = ~np.isnan(rows).any(axis=0) & ~self.matrix.is_limit[[first, second]].any(axis=0)
        tasks = [task for task in self.representatives if is_used[task]]
        num_equal = sum(rows[0, task] == rows[1, task] for task in tasks)
        if num_equal < max(MIN_EQUAL, MIN_SHARE * len(tasks)):
            return 1.0
        chances = np.ones(1)
        for task in tasks:
            spread = self.spreads[has_same_seed][task]
            rate = float(erf(self._find_resolution(task) / (2 * spread))) if spread > 0 else 1.0
            rate = max(rate, self._share_of_equal_pairs(task, {first, second}))
            chances = np.convolve(chances, [1 - rate, rate])
        chance = float(chances[num_equal:].sum()) * len(runs) * (len(runs) - 1) / 2
        return min(1.0, chance * (self._bound_odd_pair(first, second, tasks) if has_same_seed else 1.0))

    def _bound_odd_pair(self, first: int, second: int, tasks: Sequence[int]) -> float:
        """Bound the probability that two arms agree in one seed although they differ by the same in the others."""
        numbers, rows = self.matrix.numbers, {run: row for row, run in enumerate(self.matrix.runs)}
        (one, _), (other, _) = self.matrix.runs[first], self.matrix.runs[second]
        pairs = [(row, rows[other, seed]) for (arm, seed), row in rows.items() if arm == one and (other, seed) in rows]
        changes = np.array([numbers[row] - numbers[twin] for row, twin in pairs if row != first])[:, tasks]
        changes = changes[~np.isnan(changes).any(axis=1)]
        num = len(changes)
        if num <= MIN_DEGREES:
            return 1.0
        rounding = np.array([self._find_resolution(task) for task in tasks]) / np.sqrt(6)
        spreads = np.maximum(changes.std(axis=0, ddof=1), rounding) * np.sqrt(1 + 1 / num)
        distance = float(np.median(np.abs(changes.mean(axis=0)) / spreads))
        return float(2 * stdtr(num - 1, -distance))

    def _find_resolution(self, task: int) -> float:
        """Return the smallest difference of two values."""
        cells = [of_run[key] for of_run in self.matrix.cells.values() if (key := self.matrix.tasks[task]) in of_run]
        return find_resolution(cells[0].metric, cells)[0]

    def _share_of_equal_pairs(self, task: int, pair: set[int]) -> float:
        """Return the share of the other pairs of runs that agree, of all pairs or of those that share their seed."""
        values, runs = self.matrix.numbers[:, task], self.matrix.runs
        first, second = np.triu_indices(len(values), 1)
        keep = ~np.isnan(values[first]) & ~np.isnan(values[second])
        keep &= ~((first == min(pair)) & (second == max(pair)))
        first, second = first[keep], second[keep]
        is_equal = values[first] == values[second]
        seeds = np.array([seed for _, seed in runs])
        has_same_seed = seeds[first] == seeds[second]
        shares = [float(of_kind.mean()) for of_kind in (is_equal, is_equal[has_same_seed]) if of_kind.size]
        return max(shares, default=0.0)


def find_copied_runs(table: ResultTable) -> list[RunCopy]:
    """Find pairs of runs at the last step that chance rarely makes equal."""
    if not table.steps:
        return []
    cells = [cell for cell in table.values if cell.step == table.steps[-1] and not cell.is_mean]
    if len({(cell.metric, cell.group) for cell in cells}) < MIN_EQUAL:
        return []
    matrix = RunMatrix(cells)
    pairs = list(matrix.find_equal_pairs())
    if not pairs:
        return []
    chance = ChanceOfEqual(matrix)
    copies = []
    for first, second in pairs:
        bound = chance.bound(first, second)
        if bound < NOTE_ODDS:
            copies.append(describe_copy(matrix, first, second, bound))
    return copies


def report_copied_runs(table: ResultTable, known: Collection[str]) -> Iterator[IntegrityFinding]:
    """Report copied runs, faults and notes apart. known: places that are reported already."""
    copies = [copy for copy in find_copied_runs(table) if not {cell.place for cell, _ in copy.equals} <= {*known}]
    for is_fault in (True, False):
        of_kind = [copy for copy in copies if copy.is_certain == is_fault]
        if of_kind:
            yield _report(of_kind, is_fault)


def describe_copy(matrix: RunMatrix, first: int, second: int, bound: float) -> RunCopy:
    """Return two rows of a matrix as a copy."""
    runs = matrix.runs[first], matrix.runs[second]
    earlier, later = matrix.cells[runs[0]], matrix.cells[runs[1]]
    shared = [(later[task], earlier[task]) for task in later if task in earlier]
    equals = tuple(pair for pair in shared if pair[0].number == pair[1].number)
    may_have_failed = _are_many(matrix, second) or _are_far(matrix, second)
    return RunCopy(*runs, equals, len(shared), bound, may_have_failed)


def _are_many(matrix: RunMatrix, row: int) -> bool:
    """Tell whether three runs or more have the values of a row."""
    shared = matrix.numbers == matrix.numbers[row]
    return int((shared.mean(axis=1) >= MIN_SHARE).sum()) > MIN_EQUAL


def _are_far(matrix: RunMatrix, row: int) -> bool:
    """Tell whether the values of a row are far from those of the other runs in most tasks."""
    medians = np.nanmedian(matrix.numbers, axis=0)
    spreads = MAD_TO_SD * np.nanmedian(np.abs(matrix.numbers - medians), axis=0)
    return float((np.abs(matrix.numbers[row] - medians) > FAR * spreads).mean()) > 0.5


def _design(runs: Sequence[RunKey], with_seeds: bool) -> Values:
    """Return the indicators of arms, and of seeds."""
    columns = [[arm == name for arm, _ in runs] for name in dict.fromkeys(arm for arm, _ in runs)]
    if with_seeds:
        columns += [[seed == name for _, seed in runs] for name in dict.fromkeys(seed for _, seed in runs)]
    return np.array(columns, dtype=float).T


def _find_representatives(numbers: Values) -> list[int]:
    """Return one task of each set whose values have the same order in all runs, as loss and perplexity have."""
    is_varied = np.ptp(numbers, axis=0) > 0
    ranks = rankdata(numbers, axis=0)
    chosen: list[int] = []
    for task in np.flatnonzero(is_varied):
        correlations = [abs(float(np.corrcoef(ranks[:, task], ranks[:, other])[0, 1])) for other in chosen]
        if max(correlations, default=0.0) < SAME_ORDER:
            chosen.append(int(task))
    return chosen


def _measure_own_spreads(numbers: Values, design: Values, tasks: Sequence[int]) -> dict[int, float]:
    """Return the SD of each task without what is of arm and seed, and without what the tasks of a run share.

    What they share is their first principal component. 0 if there are too few runs or tasks to know.
    """
    degrees = len(numbers) - int(np.linalg.matrix_rank(design)) if len(numbers) else 0
    if degrees < MIN_DEGREES or len(tasks) < MIN_EQUAL:
        return dict.fromkeys(tasks, 0.0)
    values = numbers[:, tasks]
    residuals = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    sizes = np.maximum(np.sqrt((residuals**2).sum(axis=0)), 1e-9 * np.abs(values).max(axis=0))
    left, scales, right = np.linalg.svd(residuals / sizes, full_matrices=False)
    own = residuals - scales[0] * np.outer(left[:, 0], right[0]) * sizes
    # The component takes a degree of freedom of the runs, and one of the tasks.
    freedom = (degrees - 1) * (1 - 1 / len(tasks))
    sds = np.sqrt((own**2).sum(axis=0) / freedom)
    robust = MAD_TO_SD * np.median(np.abs(own), axis=0) * np.sqrt(len(own) / freedom)
    return {task: float(min(sd, mad)) for task, sd, mad in zip(tasks, sds, robust, strict=True)}


def _name(run: RunKey) -> str:
    return join_words(run[0], f"seed {run[1]}")


def _count(num_equal: int, num_shared: int) -> str:
    if num_equal == num_shared:
        return f"all {num_shared} values"
    return f"{num_equal} of {num_shared} values"


def _report(copies: Sequence[RunCopy], is_fault: bool) -> IntegrityFinding:
    equals = [pair for copy in copies for pair in copy.equals]
    first = copies[0].equals
    shown = list_first([join_words(cell.group, cell.metric, cell.text) for cell, _ in first], 3)
    reason = "At this spread and precision, chance produces such a pair of runs in less than one of 10,000 tables"
    if not is_fault:
        reason = "They may be copies, or a coincidence"
        reason += " or runs that failed in the same way" if any(copy.may_have_failed for copy in copies) else ""
    steps = group_cells([cell for cell, _ in equals], lambda cell: cell.step)
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{list_first([copy.sentence for copy in copies], MAX_NAMED)} ({shown}). {reason}",
        is_fault=is_fault,
        places=tuple(dict.fromkeys(cell.place for cell, _ in equals)),
        data={
            "steps": list(steps),
            "repeats": [{"cell": cell.place, "repeats": other.place, "kind": "run"} for cell, other in equals],
        },
    )
