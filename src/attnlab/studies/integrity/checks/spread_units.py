"""A spread in another unit than its mean: 71.2 % ± 0.004, or 0.712 ± 0.4.

A fraction beside a percentage has two decimals more than its mean, and is below the mean's last digit; a percentage
beside a fraction has two decimals fewer. Without rounding, an SD below 0.01 points is not one over seeds of a score
that is neither near 0 nor near 100 %, and no values between 0 and 1 with the mean m have an SD above √(2·m·(1 − m)).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.figure import parse_number
from ..tables.metrics import FRACTION, LIMITED, PERCENT, RATES, UNNAMED, count_decimals, recognise_metric
from ..tables.table import Cell, ResultTable, group_cells
from .units import Unit, Units, quote_units

TINY = 0.01
"""In points; an SD over seeds below it is not plausible for a score between EDGE and 100 − EDGE."""
SMALL = 0.05
"""In points; an SD below it and below the last digit of its mean is taken for a fraction."""
LARGE = 0.05
"""An SD of fractions above it, with two decimals fewer than its mean, is taken for a percentage."""
EDGE = 1.0
MORE_DECIMALS = 2
"""What dividing by 100 adds."""


def settle_spread_units(
    table: ResultTable, units: Units, asked: Mapping[str, Unit]
) -> tuple[ResultTable, dict[str, str], list[IntegrityFinding]]:
    """Find spreads in another unit than their means; return the table, why metrics are not compared, and the findings.

    asked: units by metric, as the user gave them. `convert` gives the spreads the unit of their means; `percent` and
    `fraction` say that both have one.
    """
    factors = {cell: factor for cell in table.values if (factor := _find_factor(cell, units)) != 1.0}
    by_metric = group_cells(factors, lambda cell: cell.metric)
    converted: dict[Cell, Cell] = {}
    obstacles: dict[str, str] = {}
    findings = []
    for metric, cells in by_metric.items():
        if asked.get(metric) in ("percent", "fraction"):
            continue
        is_converted = asked.get(metric) == "convert"
        findings.append(_report(metric, cells, factors[cells[0]] > 1, is_converted))
        if is_converted:
            converted |= {cell: replace(cell, sd=(cell.sd or 0.0) * factors[cell]) for cell in cells}
        else:
            obstacles[metric] = f"the spread of {metric} is in another unit than its mean"
    settled = replace(table, cells=tuple(converted.get(cell, cell) for cell in table.cells))
    return settled, obstacles, findings


def _find_factor(cell: Cell, units: Units) -> float:
    """Return what gives a spread the unit of its mean: 100, 0.01, or 1 if it has it."""
    spread, name = parse_number(cell.sd_text), recognise_metric(cell.metric)
    if not spread or cell.sd_text.endswith("%") or name not in LIMITED | RATES | UNNAMED | {""}:
        return 1.0
    is_percent = cell.text.endswith("%") or units.find_scale(cell) == PERCENT or abs(cell.number) > 1
    if is_percent:
        return 100.0 if _is_fraction(cell, spread, name in LIMITED or cell.text.endswith("%")) else 1.0
    return 0.01 if _is_percentage(cell, spread, units.find_scale(cell) == FRACTION) else 1.0


def _is_fraction(cell: Cell, spread: float, is_limited: bool) -> bool:
    """Tell whether the spread of a percentage is written as a fraction."""
    num_more = count_decimals(cell.sd_text) - count_decimals(cell.text)
    is_below_digit = num_more >= MORE_DECIMALS and spread < min(SMALL, 10.0 ** -count_decimals(cell.text))
    is_inside = EDGE <= abs(cell.number) <= PERCENT - EDGE
    return is_below_digit or (is_limited and is_inside and num_more >= 0 and spread < TINY)


def _is_percentage(cell: Cell, spread: float, is_limited: bool) -> bool:
    """Tell whether the spread of a fraction is written in percent."""
    num_more = count_decimals(cell.sd_text) - count_decimals(cell.text)
    mean = abs(cell.number)
    is_impossible = is_limited and 0 < mean <= 1 and spread > math.sqrt(2 * mean * (1 - mean)) + 1e-9 and spread > LARGE
    return (0 < mean <= 1 and num_more <= -MORE_DECIMALS and spread > LARGE) or is_impossible


def _report(metric: str, cells: Sequence[Cell], is_fraction: bool, is_converted: bool) -> IntegrityFinding:
    shown = list_first([f"{cell.title} {cell.text} ± {cell.sd_text} ({cell.place})" for cell in cells], 3)
    what = "a fraction beside a mean in percent" if is_fraction else "in percent beside a mean that is a fraction"
    done = "multiplied by 100" if is_fraction else "divided by 100"
    same = "percent" if is_fraction else "fraction"
    ending = f"It was {done}, as --units asks" if is_converted else " ".join(_explain(metric, done, same))
    return IntegrityFinding(
        IntegrityKind.MIXED_UNITS,
        f"the spread of {metric} appears to be {what}: {shown}. {ending}",
        is_fault=not is_converted,
        places=tuple(cell.place for cell in cells),
        data={"metric": metric, "num_spreads": len(cells)},
    )


def _explain(metric: str, done: str, same: str) -> Iterator[str]:
    yield f"It is not used, and {metric} is not compared. If it is so, {quote_units(metric, 'convert')} gives the unit"
    yield f"of the mean (it is then {done}); if mean and spread have one unit, give {quote_units(metric, same)}"
