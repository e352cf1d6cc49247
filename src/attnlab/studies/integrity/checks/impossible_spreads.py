"""SDs that no seeds can have. The SD of k values between a and b with the mean m is largest if as many as possible are
at the ends: with s = k(m − a)/(b − a), ⌊s⌋ are b, one is a + (s − ⌊s⌋)(b − a), and the others are a.
"""

import math
from collections.abc import Collection, Iterator

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import count_decimals, find_limits
from ..tables.table import Cell, ResultTable, group_cells
from .impossible_values import ImpossibleValues
from .units import Units


def find_impossible_spreads(
    table: ResultTable, units: Units, known: Collection[str] = ()
) -> Iterator[ImpossibleValues]:
    """Find means whose SD over seeds is impossible. known: metrics whose spreads are reported as in another unit."""
    with_sd = [cell for cell in table.values if cell.sd is not None and cell.metric not in known]
    for metric, cells in group_cells(with_sd, lambda cell: cell.metric).items():
        bounds = {cell: _bound_sd(cell, units.find_scale(cell)) for cell in cells}
        wrong = [cell for cell, bound in bounds.items() if (cell.sd or 0.0) - _round_off(cell.sd_text) > bound]
        if wrong:
            shown = list_first([
                f"{cell.text} ± {cell.sd_text} ({cell.place}), at most {bounds[cell]:.3g} "
                f"{f'with {cell.num_seeds} seeds' if cell.num_seeds else 'with any number of seeds'}" for cell in wrong
            ])  # fmt: skip
            sentence = (
                f"the SD of {metric} over seeds is larger than that of any values within its limits with this mean, "
                f"rounded: {shown}. If ± is no SD, give --spread se or --spread ci"
            )
            places = tuple(cell.place for cell in wrong)
            finding = IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=places)
            yield ImpossibleValues(finding, tuple(wrong))


def _bound_sd(cell: Cell, scale: float | None) -> float:
    """Return the largest SD of seeds whose mean rounds to a cell's; infinite if it has no limits, or of one seed."""
    limits, num_seeds = find_limits(cell.metric, scale), cell.num_seeds
    if limits is None or num_seeds == 1 or not limits[0] <= cell.number <= limits[1]:
        return math.inf
    low, high = limits
    half = _round_off(cell.text)
    first, last = (min(max((cell.number + by - low) / (high - low), 0.0), 1.0) for by in (-half, half))
    if num_seeds is None:
        # Over all k ≥ 2 the largest SD, at a share p ≤ 1/2 of the range, is at most √p: reached if 1/p is whole.
        return (high - low) * math.sqrt(min(last, 1 - first, 0.5))
    first, last = first * num_seeds, last * num_seeds
    # Between whole sums the largest SD is convex, so that it is at the ends or at a whole sum.
    sums = (first, last, *range(math.ceil(first), math.floor(last) + 1))
    return (high - low) * max(_find_largest_sd(total, num_seeds) for total in sums)


def _find_largest_sd(total: float, num_seeds: int) -> float:
    """Return the largest SD of values between 0 and 1 with this sum."""
    num_high = math.floor(total)
    squares = num_high + (total - num_high) ** 2 - total**2 / num_seeds
    return math.sqrt(max(squares, 0.0) / (num_seeds - 1))


def _round_off(text: str) -> float:
    """Return half of the last digit, with some slack."""
    return 0.51 * 10.0 ** -count_decimals(text)
