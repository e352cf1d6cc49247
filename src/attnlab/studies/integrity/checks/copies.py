"""Arms or groups that have each other's values, seed by seed or in another order, more often than chance allows.

Two independent normal values with the SD σ are rounded to the same multiple of r with probability at most
P(|N(0, 2σ²)| < r) = erf(r / 2σ). The number of seeds with equal values is then bounded by a binomial distribution, and
the number of equal values in any order by the expected number of matchings. A value counts once, however often it
occurs: all runs that failed may have the same score.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import bdtrc, erf, gammaln

from ..tables.metrics import count_decimals, find_resolution
from ..tables.table import Cell, ResultTable, group_cells, join_words, show_step
from .coincidence import is_informative

MIN_EQUAL = 3
"""Fewer equal values are not called copies: with a failed seed in both arms, one coincidence would suffice."""
MANY_COLUMNS = 200
"""A value that so many columns share is no evidence of a copy."""
MIN_ROBUST = 4
"""From this number of seeds on the SD is taken from the median absolute deviation if that is smaller."""
MAD_TO_SD = 1.4826
"""The SD of normal values over their median absolute deviation."""
ColumnKey = tuple[str, str]
"""Arm and group."""
Equals = list[tuple[Cell, Cell]]
"""Cells of the second column, each with a cell of the first that has the same value."""


@dataclass(frozen=True)
class ScoreColumn:
    """The scores of one arm, group, metric and step, by seed."""

    cells: dict[str, Cell]

    @property
    def name(self) -> str:
        """Arm and group in words."""
        first = next(iter(self.cells.values()))
        return join_words(first.arm, first.group)

    @property
    def sd(self) -> float:
        """The SD over seeds, or a smaller robust one, so that failed runs do not make equal values look unlikely."""
        values = np.array([cell.number for cell in self.cells.values()])
        sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        if len(values) < MIN_ROBUST:
            return sd
        return min(sd, MAD_TO_SD * float(np.median(np.abs(values - np.median(values)))))


@dataclass(frozen=True)
class ColumnCopy:
    """Two columns with equal values. is_certain: chance is excluded also if values are as coarse as they may be.

    If it is not, all seeds are equal, and values with the printed digits would not be so by chance.
    """

    first: ScoreColumn
    second: ScoreColumn
    equals: Equals
    num_seeds: int
    is_in_order: bool
    is_certain: bool = True

    @property
    def sentence(self) -> str:
        """Who has whose values, in words."""
        cell, num_equal = self.equals[0][0], len(self.equals)
        metric = cell.metric if cell.step is None else f"{cell.metric} at {show_step(cell.step)}"
        if self.is_in_order:
            return f"{self.second.name} has the {metric} of {self.first.name} in {num_equal} of {self.num_seeds} seeds"
        values = f"{num_equal} of {self.num_seeds} values of {self.first.name}"
        return f"{self.second.name} has {values} ({metric}), in another order of seeds"


def find_copies(table: ResultTable, odds: float) -> list[ColumnCopy]:
    """Find pairs of columns with more equal values than chance produces in a share `odds` of tables."""
    has_steps = len(table.steps) > 1
    cells = [cell for cell in table.values if is_informative(cell, has_steps)]
    blocks = group_cells(cells, lambda cell: (cell.metric, cell.step))
    columns = {key: _list_columns(block) for key, block in blocks.items()}
    num_pairs = sum(_count_pairs(list(of_block)) for of_block in columns.values())
    by_metric = group_cells(table.values, lambda cell: cell.metric)
    resolutions = {metric: find_resolution(metric, of_metric)[0] for metric, of_metric in by_metric.items()}
    copies: list[ColumnCopy] = []
    for (metric, _), of_block in columns.items():
        for first, second in _find_candidates(of_block):
            # A test in the order of seeds, and one in any order.
            copies += _compare(of_block[first], of_block[second], resolutions[metric], odds / (2 * num_pairs))
    return copies


def _list_columns(cells: Sequence[Cell]) -> dict[ColumnKey, ScoreColumn]:
    by_column = group_cells(cells, lambda cell: (cell.arm, cell.group))
    return {key: ScoreColumn({cell.seed: cell for cell in of_column}) for key, of_column in by_column.items()}


def _count_pairs(keys: Sequence[ColumnKey]) -> int:
    """Count the pairs that share their arm or their group."""
    arms, groups = Counter(arm for arm, _ in keys), Counter(group for _, group in keys)
    return sum(num * (num - 1) // 2 for num in (*arms.values(), *groups.values()))


def _find_candidates(columns: dict[ColumnKey, ScoreColumn]) -> list[tuple[ColumnKey, ColumnKey]]:
    """Return the pairs that share their arm or their group, and enough values."""
    holders: dict[float, list[ColumnKey]] = {}
    for key, column in columns.items():
        for value in {cell.number for cell in column.cells.values()}:
            holders.setdefault(value, []).append(key)
    counts = Counter[tuple[ColumnKey, ColumnKey]]()
    for keys in holders.values():
        if len(keys) <= MANY_COLUMNS:
            counts.update(pair for pair in combinations(keys, 2) if _share_arm_or_group(*pair))
    return [pair for pair, count in counts.items() if count >= MIN_EQUAL]


def _share_arm_or_group(first: ColumnKey, second: ColumnKey) -> bool:
    return (first[0] == second[0]) != (first[1] == second[1])


def _compare(first: ScoreColumn, second: ScoreColumn, resolution: float, odds: float) -> Iterator[ColumnCopy]:
    sd = min(first.sd, second.sd)
    if not sd:
        return
    shared = [seed for seed in second.cells if seed in first.cells]
    in_order = _keep_equal([(second.cells[seed], first.cells[seed]) for seed in shared])
    by_value = {cell.number: cell for cell in first.cells.values()}
    in_any_order = _keep_equal([(cell, by_value.get(cell.number, cell)) for cell in second.cells.values()])
    sizes = len(first.cells), len(second.cells)
    cells = [*first.cells.values(), *second.cells.values()]
    printed = 10.0 ** -max(count_decimals(cell.text) for cell in cells)
    rate, printed_rate = (float(erf(size / (2 * sd))) for size in (max(resolution, printed), printed))
    is_guessed = printed < resolution and not all(cell.num_examples for cell in cells)
    if _bound_in_order(len(in_order), len(shared), rate) < odds:
        yield ColumnCopy(first, second, in_order, len(shared), True)
    elif _bound_in_any_order(len(in_any_order), sizes, rate) < odds:
        yield ColumnCopy(first, second, in_any_order, sizes[1], False)
    elif is_guessed and len(in_order) == len(shared) and printed_rate ** len(shared) < odds:
        yield ColumnCopy(first, second, in_order, len(shared), True, is_certain=False)


def _keep_equal(pairs: Equals) -> Equals:
    """Return the pairs with equal values, one of each value."""
    equals = [(cell, other) for cell, other in pairs if cell.number == other.number and cell is not other]
    return list({cell.number: (cell, other) for cell, other in equals}.values())


def _bound_in_order(count: int, num: int, rate: float) -> float:
    """Bound the probability that so many of `num` seeds have equal values."""
    return float(bdtrc(count - 1, num, rate)) if count >= MIN_EQUAL else 1.0


def _bound_in_any_order(count: int, sizes: tuple[int, int], rate: float) -> float:
    """Bound the probability that two columns share so many values."""
    if count < MIN_EQUAL:
        return 1.0
    # The number of matchings of `count` values is (n choose count)·(m choose count)·count!, in logs since it is large.
    ways = sum(gammaln(size + 1) - gammaln(size - count + 1) for size in sizes) - gammaln(count + 1)
    return math.exp(min(0.0, float(ways) + count * math.log(rate)))
