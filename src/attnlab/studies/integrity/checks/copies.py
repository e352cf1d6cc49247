"""Arms or groups that have each other's values, seed by seed or in another order, more often than chance allows.

Two independent normal values with the SD σ are rounded to the same multiple of r with probability at most
P(|N(0, 2σ²)| < r) = erf(r / 2σ). The number of seeds with equal values is then bounded by a binomial distribution, over
several groups by a sum of these, and the number of equal values in any order by the expected number of matchings. A
value counts once, however often it occurs: all runs that failed may have the same score.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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

    If it is not, all seeds are equal. num_groups: over so many groups of two arms, of which the columns are the first.
    """

    first: ScoreColumn
    second: ScoreColumn
    equals: Equals
    num_seeds: int
    is_in_order: bool
    is_certain: bool = True
    num_groups: int = 1

    @property
    def sentence(self) -> str:
        """Who has whose values, in words."""
        (cell, other), num_equal = self.equals[0], len(self.equals)
        metric = cell.metric if cell.step is None else f"{cell.metric} at {show_step(cell.step)}"
        if self.num_groups > 1:
            where = f"in {num_equal} of {self.num_seeds} values of {self.num_groups} groups"
            return f"{cell.arm} has the {metric} of {other.arm} {where}"
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
    num_arm_pairs = sum(map(_count_arm_pairs, columns.values()))
    # With several groups, half is for pairs of arms: an arm is more often copied as a whole than in one group.
    odds /= 2 if num_arm_pairs else 1
    # Of each pair of columns a test in the order of seeds, and one in any order.
    column_odds = odds / max(1, 2 * sum(_count_pairs(list(of_block)) for of_block in columns.values()))
    resolutions = _find_resolutions(table)
    copies: list[ColumnCopy] = []
    for (metric, step), of_block in columns.items():
        sizes = {group: resolutions[metric, group] for _, group in of_block}
        of_arms = list(_compare_arms(of_block, sizes, odds / max(1, num_arm_pairs), step == table.steps[-1]))
        known = {cell for copy in of_arms if copy.is_certain for cell, _ in copy.equals}
        for first, second in _find_candidates(of_block):
            size = max(sizes[first[1]], sizes[second[1]])
            found = _compare(of_block[first], of_block[second], size, column_odds, step == table.steps[-1])
            copies += [copy for copy in found if not {cell for cell, _ in copy.equals} <= known]
        reported = {cell for copy in copies for cell, _ in copy.equals}
        copies += [copy for copy in of_arms if copy.is_certain or not {cell for cell, _ in copy.equals} <= reported]
    return copies


def _find_resolutions(table: ResultTable) -> dict[tuple[str, str], float]:
    """Return the resolution by metric and group: that of the group if it is known, or coarser than that of all."""
    by_metric = group_cells(table.values, lambda cell: cell.metric)
    resolutions = {}
    for metric, of_metric in by_metric.items():
        common = find_resolution(metric, of_metric)[0]
        for group, of_group in group_cells(of_metric, lambda cell: cell.group).items():
            own = find_resolution(metric, of_group)[0]
            is_known = all(cell.num_examples for cell in of_group)
            resolutions[metric, group] = own if is_known else max(own, common)
    return resolutions


def _count_arm_pairs(columns: Mapping[ColumnKey, ScoreColumn]) -> int:
    """Count the pairs of arms that are compared over several groups."""
    arms, groups = ({key[part] for key in columns} for part in (0, 1))
    return len(arms) * (len(arms) - 1) // 2 if len(groups) > 1 else 0


def _compare_arms(
    columns: Mapping[ColumnKey, ScoreColumn], resolutions: Mapping[str, float], odds: float, is_last: bool
) -> Iterator[ColumnCopy]:
    """Compare the values of two arms with the same group and seed, over all groups.

    Equal values throughout that chance does not exclude are reported of the last step.
    """
    holders: dict[tuple[str, str, float], list[str]] = {}
    for (arm, group), column in columns.items():
        for seed, cell in column.cells.items():
            holders.setdefault((group, seed, cell.number), []).append(arm)
    counts = Counter[tuple[str, str]]()
    for arms in holders.values():
        if len(arms) <= MANY_COLUMNS:
            counts.update(combinations(arms, 2))
    for (first, second), _ in filter(lambda item: item[1] >= MIN_EQUAL, counts.items()):
        groups = [group for arm, group in columns if arm == second and (first, group) in columns]
        pairs = [(columns[first, group], columns[second, group]) for group in groups]
        equals: Equals = []
        chances, chance_of_all, num_distinct = np.ones(1), 1.0, 0
        for group, (one, other) in zip(groups, pairs, strict=True):
            shared = [(cell, one.cells[seed]) for seed, cell in other.cells.items() if seed in one.cells]
            num_once = len(_keep_equal(shared))
            num_distinct += num_once
            equals += [(cell, earlier) for cell, earlier in shared if cell.number == earlier.number]
            rate = _bound_rate(one, other, resolutions[group])
            chance_of_all *= rate**num_once
            for _ in shared:
                chances = np.convolve(chances, [1 - rate, rate])
        num = len(chances) - 1
        are_all = len(equals) == num
        chance = chance_of_all if are_all else float(chances[num_distinct:].sum())
        is_certain = len(groups) > 1 and chance < odds
        if num_distinct >= MIN_EQUAL and (is_certain or (is_last and are_all)):
            yield ColumnCopy(*pairs[0], equals, num, True, is_certain, len(groups))


def _bound_rate(first: ScoreColumn, second: ScoreColumn, resolution: float) -> float:
    """Bound the probability that two runs have the same value."""
    sd = min(first.sd, second.sd)
    return float(erf(max(resolution, _find_printed([first, second])) / (2 * sd))) if sd else 1.0


def _find_printed(columns: Sequence[ScoreColumn]) -> float:
    """Return the last printed digit."""
    return 10.0 ** -max(count_decimals(cell.text) for column in columns for cell in column.cells.values())


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


def _compare(
    first: ScoreColumn, second: ScoreColumn, resolution: float, odds: float, is_last: bool
) -> Iterator[ColumnCopy]:
    """Compare two columns in the order of seeds and in any order.

    Equal values throughout that chance does not exclude are reported of the last step.
    """
    if not min(first.sd, second.sd):
        return
    shared = [seed for seed in second.cells if seed in first.cells]
    in_order = _keep_equal([(second.cells[seed], first.cells[seed]) for seed in shared])
    by_value = {cell.number: cell for cell in first.cells.values()}
    in_any_order = _keep_equal([(cell, by_value.get(cell.number, cell)) for cell in second.cells.values()])
    sizes = len(first.cells), len(second.cells)
    cells, printed = [*first.cells.values(), *second.cells.values()], _find_printed([first, second])
    rate, printed_rate = (_bound_rate(first, second, size) for size in (resolution, printed))
    is_guessed = printed < resolution and not all(cell.num_examples for cell in cells)
    if _bound_in_order(len(in_order), len(shared), rate) < odds:
        yield ColumnCopy(first, second, in_order, len(shared), True)
    elif _bound_in_any_order(len(in_any_order), sizes, rate) < odds:
        yield ColumnCopy(first, second, in_any_order, sizes[1], False)
    elif is_guessed and len(in_order) == len(shared) and printed_rate ** len(shared) < odds:
        yield ColumnCopy(first, second, in_order, len(shared), True, is_certain=False)
    elif is_last and _hold_same_values(first, second) and len(in_any_order) >= MIN_EQUAL:
        yield ColumnCopy(first, second, in_any_order, sizes[1], False, is_certain=False)


def _hold_same_values(first: ScoreColumn, second: ScoreColumn) -> bool:
    """Tell whether two arms have the same values, each as often, in another order of seeds."""
    values = [sorted(cell.number for cell in column.cells.values()) for column in (first, second)]
    by_seed = [{seed: cell.number for seed, cell in column.cells.items()} for column in (first, second)]
    arms = {cell.arm for column in (first, second) for cell in column.cells.values()}
    return values[0] == values[1] and by_seed[0] != by_seed[1] and len(arms) > 1


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
