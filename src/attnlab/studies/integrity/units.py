"""The unit of each value: metrics such as accuracy are written as fractions or in percent, and some tables mix both.

A value between 0 and 1 appears to be a fraction if the other values of its step, group and metric are percentages more
than ten times as large. The two are not compared until the user gives the unit (`--units`). Only if every percentage
carries a percent sign is the unit of the others certain, and they are converted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from .finding import IntegrityFinding, IntegrityKind, list_first
from .metrics import FEW, FRACTION, LIMITED, PERCENT, RATES, UNNAMED, kind_of
from .resolution import decimals_of
from .table import Cell, ResultTable, group_cells, value_of

Unit = Literal["percent", "fraction", "convert"]
UNITS: tuple[Unit, ...] = ("percent", "fraction", "convert")
"""What a user may say: everything is in percent, everything is a fraction, or fractions among percentages × 100."""
APART = 10.0
"""A value this many times smaller than the median of the percentages beside it appears to be a fraction."""
LIKELY = 1.5
"""For metrics without known limits, 100 times the one median must be within this factor of the other."""


@dataclass(frozen=True)
class Units:
    """The unit of every cell. scales: 100, 1 or None by metric and group. fractions: the cells among percentages."""

    scales: Mapping[tuple[str, str], float | None] = field(default_factory=dict)
    fractions: frozenset[Cell] = frozenset()

    def scale_of(self, cell: Cell) -> float | None:
        """Return the largest value that a cell's metric can have in its unit; None if it has no limit."""
        scale = self.scales.get((cell.metric, cell.group))
        return FRACTION if cell in self.fractions and kind_of(cell.metric) in LIMITED else scale

    def are_mixed(self, cells: Iterable[Cell]) -> bool:
        """Tell whether some of the cells are fractions and others are not; 0 is the same in both units."""
        return len({cell in self.fractions for cell in cells if cell.value}) > 1


def settle_units(table: ResultTable, asked: Mapping[str, Unit]) -> tuple[ResultTable, Units, list[IntegrityFinding]]:
    """Find the unit of every cell, convert where that is certain or asked for, and report what is mixed.

    asked: units by metric, as the user gave them.
    """
    parts = [
        _settle(metric, [c for c in table.values if c.metric == metric], asked.get(metric)) for metric in table.metrics
    ]
    scales = {key: scale for part in parts for key, scale in part.scales.items()}
    converted = {cell: convert(cell) for part in parts for cell in part.converted}
    cells = tuple(converted.get(cell, cell) for cell in table.cells)
    fractions = frozenset(cell for part in parts for cell in part.fractions)
    findings = [finding for part in parts for finding in part.findings]
    units = Units(scales, fractions)
    return replace(table, cells=cells), units, [*findings, *_compare_metrics(table.metrics, units)]


def read_units(table: ResultTable) -> Units:
    """Return the units of a table that does not mix them: a metric with any value above 1 is in percent."""
    by_metric = group_cells(table.values, lambda cell: cell.metric)
    scales = {
        metric: PERCENT if any(abs(value_of(cell)) > 1 for cell in cells) else FRACTION
        for metric, cells in by_metric.items()
        if kind_of(metric) in LIMITED
    }
    return Units({(cell.metric, cell.group): scales.get(cell.metric) for cell in table.values})


@dataclass(frozen=True)
class _Part:
    """The units of one metric."""

    scales: Mapping[tuple[str, str], float | None]
    fractions: Sequence[Cell] = ()
    converted: Sequence[Cell] = ()
    findings: Sequence[IntegrityFinding] = ()


def _settle(metric: str, cells: Sequence[Cell], asked: Unit | None) -> _Part:
    groups = group_cells(cells, lambda cell: cell.group)
    is_limited = kind_of(metric) in LIMITED
    if asked in ("percent", "fraction"):
        scale = (PERCENT if asked == "percent" else FRACTION) if is_limited else None
        return _Part({(metric, group): scale for group in groups})
    if not is_limited and kind_of(metric) not in RATES | UNNAMED | {""}:
        return _Part({(metric, group): None for group in groups})
    fractions = [cell for group in groups.values() for cell in find_fractions(group, is_limited)]
    marked = set(fractions)
    scales = {
        (metric, name): _find_scale([cell for cell in group if cell not in marked]) if is_limited else None
        for name, group in groups.items()
    }
    percentages = [cell for cell in cells if cell not in marked and cell.value and not _is_small(cell)]
    in_fractions = [cell for cell in cells if scales[metric, cell.group] == FRACTION]
    is_split = len({scale for scale in scales.values() if scale is not None}) > 1
    if asked == "convert":
        chosen = [*fractions, *(in_fractions if is_split else ())]
        note = [_report_conversion(metric, chosen, "as --units asks")] if chosen else []
        return _Part(dict.fromkeys(scales, PERCENT if is_limited else None), (), chosen, note)
    if fractions and all(_is_signed(cell) for cell in percentages):
        note = [_report_conversion(metric, fractions, "since all other values carry a percent sign")]
        return _Part(scales, (), fractions, note)
    findings = [_report_mixture(metric, fractions, percentages)] if fractions else []
    if is_split:
        findings.append(_report_groups(metric, scales))
    return _Part(scales, fractions, (), findings)


def find_fractions(cells: Sequence[Cell], is_limited: bool) -> list[Cell]:
    """Return the cells of one group and metric that appear to be fractions among percentages."""
    steps = sorted(group_cells(cells, lambda cell: cell.step).items(), key=lambda pair: pair[0] or 0.0)
    fractions = [cell for _, here in steps for cell in _split(here, is_limited)]
    # A change of unit between two steps: every value of the one is 1/100 of what the next step continues from.
    for (_, before), (_, after) in pairwise(steps):
        first, second = _median(before), _median(after)
        low, high = (before, after) if first < second else (after, before)
        is_change = all(_is_small(cell) for cell in low if cell.value) and not any(_is_small(cell) for cell in high)
        if is_change and first > 0 < second and _is_likely(min(first, second), max(first, second)):
            fractions += [cell for _, here in steps for cell in here if all(map(_is_small, here))]
            break
    return list(dict.fromkeys(fractions))


def _split(cells: Sequence[Cell], is_limited: bool) -> list[Cell]:
    """Return the fractions among the cells of one step, by how far they lie below the percentages."""
    small = [cell for cell in cells if _is_small(cell)]
    large = [cell for cell in cells if not _is_small(cell) and cell.value]
    if not small or not large:
        return []
    below, above = _median(small), _median(large)
    if not is_limited:
        is_mixed = min(abs(value_of(cell)) for cell in large) >= APART and _is_likely(below, above)
        return small if is_mixed else []
    if _are_impossible(small, large):
        return []
    return [cell for cell in small if abs(value_of(cell)) * APART < above]


def _are_impossible(small: Sequence[Cell], large: Sequence[Cell]) -> bool:
    """Tell whether the few values above 1 are rather impossible fractions, such as 1.04 among values of 0.8."""
    is_few = len(large) <= FEW * (len(small) + len(large)) and not any(map(_is_signed, large))
    return is_few and max(abs(value_of(cell)) for cell in large) < APART * _median(small)


def _find_scale(cells: Sequence[Cell]) -> float:
    small = [cell for cell in cells if _is_small(cell)]
    large = [cell for cell in cells if not _is_small(cell) and cell.value]
    return FRACTION if not large or (small and _are_impossible(small, large)) else PERCENT


def _is_small(cell: Cell) -> bool:
    return 0 < abs(value_of(cell)) <= 1 and not _is_signed(cell)


def _is_signed(cell: Cell) -> bool:
    return cell.text.endswith("%")


def _is_likely(below: float, above: float) -> bool:
    return 1 / LIKELY < 100 * below / above < LIKELY


def _median(cells: Sequence[Cell]) -> float:
    sizes = [abs(value_of(cell)) for cell in cells if cell.value]
    return statistics.median(sizes) if sizes else 0.0


def convert(cell: Cell) -> Cell:
    """Write a fraction in percent, with as many digits as it had."""
    digits = max(0, decimals_of(cell.text) - 2)
    value = round(100 * value_of(cell), digits)
    return replace(cell, value=value, text=f"{value:.{digits}f}")


def _report_mixture(metric: str, fractions: Sequence[Cell], percentages: Sequence[Cell]) -> IntegrityFinding:
    return IntegrityFinding(
        IntegrityKind.MIXED_UNITS,
        f"{metric} mixes units: {_count(fractions)} between 0 and 1, like fractions ({_show(fractions)}), and "
        f"{_count(percentages)} above 1, like percentages ({_show(percentages)}). Values of different units are not "
        f"compared. If the values up to 1 are fractions, --units {metric}=convert multiplies them by 100; if all are "
        f"percentages, give --units {metric}=percent",
        places=tuple(cell.place for cell in fractions),
        data={"metric": metric, "num_fractions": len(fractions), "num_percentages": len(percentages)},
    )


def _report_groups(metric: str, scales: Mapping[tuple[str, str], float | None]) -> IntegrityFinding:
    groups = {
        scale: list_first([f"'{group}'" for (_, group), own in scales.items() if own == scale], 3)
        for scale in (FRACTION, PERCENT)
    }
    return IntegrityFinding(
        IntegrityKind.MIXED_UNITS,
        f"{metric} is a fraction in {groups[FRACTION]} and a percentage in {groups[PERCENT]}; each group is compared "
        f"in its own unit. --units {metric}=convert multiplies the fractions by 100; if all values are percentages, "
        f"give --units {metric}=percent",
        data={"metric": metric},
    )


def _report_conversion(metric: str, cells: Sequence[Cell], why: str) -> IntegrityFinding:
    arms = list_first(list(dict.fromkeys(f"'{cell.arm}'" for cell in cells)), 3)
    number = f"{len(cells)} {'value' if len(cells) == 1 else 'values'}"
    sentence = f"{metric}: {number} of {arms} multiplied by 100, {why} ({_show(cells)})"
    return IntegrityFinding(
        IntegrityKind.MIXED_UNITS,
        sentence,
        is_fault=False,
        places=tuple(cell.place for cell in cells),
        data={"metric": metric},
    )


def _compare_metrics(metrics: Sequence[str], units: Units) -> Iterator[IntegrityFinding]:
    """Note metrics of different units; nothing is compared across metrics, so this is no fault."""
    by_scale: dict[float, list[str]] = {}
    for metric in metrics:
        scales = {scale for (name, _), scale in units.scales.items() if name == metric and scale is not None}
        if len(scales) == 1:
            by_scale.setdefault(scales.pop(), []).append(metric)
    if len(by_scale) > 1:
        sentence = (
            f"written as fractions: {list_first(by_scale[FRACTION])}; in percent: {list_first(by_scale[PERCENT])}; "
            "each metric is compared in its own unit"
        )
        yield IntegrityFinding(
            IntegrityKind.MIXED_UNITS,
            sentence,
            is_fault=False,
            data={"metrics": [*by_scale[FRACTION], *by_scale[PERCENT]]},
        )


def _count(cells: Sequence[Cell]) -> str:
    arms = list_first(list(dict.fromkeys(f"'{cell.arm}'" for cell in cells)), 3)
    return f"{len(cells)} {'value' if len(cells) == 1 else 'values'} of {arms} {'lies' if len(cells) == 1 else 'lie'}"


def _show(cells: Sequence[Cell]) -> str:
    return list_first([f"{cell.text}, {cell.place}" for cell in cells], 1)
