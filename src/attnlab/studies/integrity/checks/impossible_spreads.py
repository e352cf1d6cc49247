"""SDs that no seeds can have: n values between a and b with the mean m have one of at most √(n/(n − 1)·(m − a)(b − m)).

The bound is reached if every seed has the lowest or the highest score.
"""

import math
from collections.abc import Collection, Iterator

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import count_decimals, find_limits
from ..tables.table import Cell, ResultTable, group_cells
from .impossible_values import ImpossibleValues
from .units import Units

FEWEST = 2
"""Of an unknown number of seeds, the one with the largest bound."""


def find_impossible_spreads(
    table: ResultTable, units: Units, known: Collection[str] = ()
) -> Iterator[ImpossibleValues]:
    """Find means whose SD over seeds is impossible. known: metrics whose spreads are reported as in another unit."""
    with_sd = [cell for cell in table.values if cell.sd is not None and cell.metric not in known]
    for metric, cells in group_cells(with_sd, lambda cell: cell.metric).items():
        bounds = {cell: _bound_sd(cell, units.find_scale(cell)) for cell in cells}
        wrong = [cell for cell, bound in bounds.items() if (cell.sd or 0.0) > bound]
        if wrong:
            shown = list_first([
                f"{cell.text} ± {cell.sd_text} ({cell.place}), at most {bounds[cell]:.3g} "
                f"{f'with {cell.num_seeds} seeds' if cell.num_seeds else 'with 2 or more seeds'}" for cell in wrong
            ])  # fmt: skip
            sentence = (
                f"the SD of {metric} over seeds is larger than that of any values within its limits with this mean: "
                f"{shown}. If ± is no SD, give --spread se or --spread ci"
            )
            places = tuple(cell.place for cell in wrong)
            finding = IntegrityFinding(IntegrityKind.IMPOSSIBLE_VALUES, sentence, places=places)
            yield ImpossibleValues(finding, tuple(wrong))


def _bound_sd(cell: Cell, scale: float | None) -> float:
    """Return the largest SD that a mean of seeds can have; infinite for a metric without limits, or of one seed."""
    limits, n = find_limits(cell.metric, scale), cell.num_seeds or FEWEST
    if limits is None or n < FEWEST or not limits[0] <= cell.number <= limits[1]:
        return math.inf
    low, high = limits
    # The mean may be nearer to the middle, and the SD smaller, by half of their last digits.
    half, middle = 0.51 * 10.0 ** -count_decimals(cell.text), (low + high) / 2
    mean = min(cell.number + half, middle) if cell.number < middle else max(cell.number - half, middle)
    largest = math.sqrt(n / (n - 1) * (mean - low) * (high - mean))
    return largest + 0.51 * 10.0 ** -count_decimals(cell.sd_text)
