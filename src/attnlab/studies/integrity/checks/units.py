"""The unit of each value: metrics such as accuracy are written as fractions or in percent, and some tables mix both.

A value between 0 and 1 appears to be a fraction if the other values of its step, group and metric are percentages more
than ten times as large. The two are not compared until the user gives the unit (`--units`). Only if every percentage
carries a percent sign is the unit of the others certain, and they are converted.
"""

import shlex
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import FEW, FRACTION, LIMITED, PERCENT, RATES, UNNAMED, count_decimals, recognise_metric
from ..tables.table import Cell, ResultTable, group_cells

Unit = Literal["percent", "fraction", "convert"]
UNITS: tuple[Unit, ...] = ("percent", "fraction", "convert")
"""What a user may say: everything is in percent, everything is a fraction, or fractions among percentages × 100."""
Scales = Mapping[tuple[str, str], float | None]
APART = 10.0
"""A value this many times smaller than the median of the percentages beside it appears to be a fraction."""
LIKELY = 1.5
"""For metrics without known limits, 100 times the one median must be within this factor of the other."""


@dataclass(frozen=True)
class Units:
    """The unit of every cell. scales: 100, 1 or None by metric and group. fractions: the cells among percentages."""

    scales: Scales = field(default_factory=dict)
    fractions: frozenset[Cell] = frozenset()

    def find_scale(self, cell: Cell) -> float | None:
        """Return the largest value that a cell's metric can have in its unit; None if it has no limit."""
        scale = self.scales.get((cell.metric, cell.group))
        return FRACTION if cell in self.fractions and recognise_metric(cell.metric) in LIMITED else scale

    def list_scales(self, metric: str) -> set[float]:
        """Return the scales of a metric in all groups."""
        return {scale for (name, _), scale in self.scales.items() if name == metric and scale is not None}

    def are_mixed(self, cells: Iterable[Cell]) -> bool:
        """Tell whether some of the cells are fractions and others are not; 0 is the same in both units."""
        return len({cell in self.fractions for cell in cells if cell.value}) > 1


def settle_units(table: ResultTable, asked: Mapping[str, Unit]) -> tuple[ResultTable, Units, list[IntegrityFinding]]:
    """Find the unit of every cell, convert where that is certain or asked for, and report what is mixed.

    asked: units by metric, as the user gave them.
    """
    by_metric = {metric: [cell for cell in table.values if cell.metric == metric] for metric in table.metrics}
    parts = [_settle_metric(metric, cells, asked.get(metric)) for metric, cells in by_metric.items()]
    all_scales = {key: scale for scales, *_ in parts for key, scale in scales.items()}
    units = Units(all_scales, frozenset(cell for _, fractions, *_ in parts for cell in fractions))
    converted = {cell: _convert(cell) for *_, chosen, _ in parts for cell in chosen}
    findings = [finding for *_, of_metric in parts for finding in of_metric]
    cells = tuple(converted.get(cell, cell) for cell in table.cells)
    return replace(table, cells=cells), units, [*findings, *_compare_metrics(table.metrics, units)]


def read_units(table: ResultTable) -> Units:
    """Return the units of a table that does not mix them: a metric with any value above 1 is in percent."""
    percent = {cell.metric for cell in table.values if abs(cell.number) > 1}
    scales = {metric: PERCENT if metric in percent else FRACTION for metric in table.metrics}
    limited = [cell for cell in table.values if recognise_metric(cell.metric) in LIMITED]
    return Units({(cell.metric, cell.group): scales[cell.metric] for cell in limited})


def describe_units(table: ResultTable, units: Units) -> Iterator[str]:
    """Say in which unit each metric with limits is."""
    for metric in table.metrics:
        scales = units.list_scales(metric)
        if len(scales) == 1:
            yield f"{metric} in percent" if scales == {PERCENT} else f"{metric} as a fraction"


def describe_unused_units(table: ResultTable, asked: Mapping[str, Unit], used: Collection[str] = ()) -> Iterator[str]:
    """Say which of the given units have no effect. used: metrics whose spreads they convert."""
    for metric, unit in asked.items():
        if metric in used:
            continue
        name = recognise_metric(metric)
        cells = [cell for cell in table.values if cell.metric == metric]
        scales, fractions, converted, _ = _settle_metric(metric, cells, None)
        is_mixed = bool(fractions or converted) or len({*scales.values()} - {None}) > 1
        if name not in LIMITED | RATES | UNNAMED | {""}:
            yield f"--units {unit} not used for {metric}, which is neither a fraction nor a percentage"
        elif not is_mixed and (unit == "convert" or name not in LIMITED):
            yield f"--units {unit} not used for {metric}, whose values have one unit"


def _settle_metric(
    metric: str, cells: Sequence[Cell], asked: Unit | None
) -> tuple[Scales, list[Cell], list[Cell], list[IntegrityFinding]]:
    """Return the scales of a metric by group, its fractions, the cells to convert, and the findings."""
    groups = group_cells(cells, lambda cell: cell.group)
    name = recognise_metric(metric)
    is_limited = name in LIMITED
    if asked in ("percent", "fraction"):
        scale = (PERCENT if asked == "percent" else FRACTION) if is_limited else None
        return {(metric, group): scale for group in groups}, [], [], []
    if not is_limited and name not in RATES | UNNAMED | {""}:
        return {(metric, group): None for group in groups}, [], [], []
    fractions = [cell for group in groups.values() for cell in _find_fractions(group, is_limited)]
    marked = set(fractions)
    scales = {
        (metric, name): _find_scale([cell for cell in group if cell not in marked]) if is_limited else None
        for name, group in groups.items()
    }
    percentages = [cell for cell in cells if cell not in marked and cell.value and not _is_small(cell)]
    is_split = len(set(scales.values()) - {None}) > 1
    if asked == "convert":
        in_fractions = [cell for cell in cells if scales[metric, cell.group] == FRACTION]
        chosen = [*fractions, *(in_fractions if is_split else ())]
        note = [_report_conversion(metric, chosen, "as --units asks")] if chosen else []
        converted = dict.fromkeys(scales, PERCENT if is_limited else None)
        return converted if chosen else scales, [], chosen, note
    if fractions and all(map(_has_sign, percentages)):
        note = [_report_conversion(metric, fractions, "since all other values carry a percent sign")]
        return scales, [], fractions, note
    findings = [_report_mixture(metric, fractions, percentages)] if fractions else []
    if is_split:
        findings.append(_report_groups(metric, scales))
    return scales, fractions, [], findings


def _find_fractions(cells: Sequence[Cell], is_limited: bool) -> list[Cell]:
    """Return the cells of one group and metric that appear to be fractions among percentages."""
    steps = sorted(group_cells(cells, lambda cell: cell.step).items(), key=lambda pair: pair[0] or 0.0)
    fractions = [cell for _, of_step in steps for cell in _find_fractions_of_step(of_step, is_limited)]
    # A change of unit between two steps: every value of the one is 1/100 of what the next step continues from.
    for (_, before), (_, after) in pairwise(steps):
        low, high = sorted((before, after), key=_median)
        is_change = all(_is_small(cell) for cell in low if cell.value) and not any(map(_is_small, high))
        if is_change and _median(low) > 0 and _is_likely(_median(low), _median(high)):
            fractions += [cell for _, of_step in steps for cell in of_step if all(map(_is_small, of_step))]
            break
    return list(dict.fromkeys(fractions))


def _find_fractions_of_step(cells: Sequence[Cell], is_limited: bool) -> list[Cell]:
    """Return the fractions among the cells of one step, by how far they lie below the percentages."""
    small, large = _split(cells)
    if not small or not large:
        return []
    below, above = _median(small), _median(large)
    if not is_limited:
        is_mixed = min(abs(cell.number) for cell in large) >= APART and _is_likely(below, above)
        return small if is_mixed else []
    return [] if _are_impossible(small, large) else [cell for cell in small if abs(cell.number) * APART < above]


def _find_scale(cells: Sequence[Cell]) -> float:
    small, large = _split(cells)
    return FRACTION if not large or (small and _are_impossible(small, large)) else PERCENT


def _split(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Split cells that are not 0 into those that may be fractions and the others."""
    return [cell for cell in cells if _is_small(cell)], [cell for cell in cells if not _is_small(cell) and cell.value]


def _are_impossible(small: Sequence[Cell], large: Sequence[Cell]) -> bool:
    """Tell whether the few values above 1 are rather impossible fractions, such as 1.04 among values of 0.8."""
    is_few = len(large) <= FEW * (len(small) + len(large)) and not any(map(_has_sign, large))
    return is_few and max(abs(cell.number) for cell in large) < APART * _median(small)


def _is_small(cell: Cell) -> bool:
    return 0 < abs(cell.number) <= 1 and not _has_sign(cell)


def _has_sign(cell: Cell) -> bool:
    return cell.text.endswith("%")


def _is_likely(below: float, above: float) -> bool:
    return 1 / LIKELY < 100 * below / above < LIKELY


def _median(cells: Sequence[Cell]) -> float:
    sizes = [abs(cell.number) for cell in cells if cell.value]
    return statistics.median(sizes) if sizes else 0.0


def _convert(cell: Cell) -> Cell:
    """Write a fraction in percent, with as many digits as it had."""
    digits = max(0, count_decimals(cell.text) - 2)
    value = round(100 * cell.number, digits)
    return replace(cell, value=value, text=f"{value:.{digits}f}")


def quote_units(metric: str, unit: str) -> str:
    """Write `--units` for a metric, quoted where a shell needs it, so that it can be pasted."""
    return f"--units {shlex.quote(f'{metric}={unit}')}"


def _report(sentence: str, cells: Sequence[Cell] = (), is_fault: bool = True, **data: Any) -> IntegrityFinding:
    places = tuple(cell.place for cell in cells)
    return IntegrityFinding(IntegrityKind.MIXED_UNITS, sentence, is_fault, places, data)


def _report_mixture(metric: str, fractions: Sequence[Cell], percentages: Sequence[Cell]) -> IntegrityFinding:
    counts = [f"{_count(cells)} {'lies' if len(cells) == 1 else 'lie'}" for cells in (fractions, percentages)]
    sentence = (
        f"{metric} mixes units: {counts[0]} between 0 and 1, like fractions ({_show(fractions)}), and {counts[1]} "
        f"above 1, like percentages ({_show(percentages)}). Values of different units are not compared. If the values "
        f"up to 1 are fractions, {quote_units(metric, 'convert')} multiplies them by 100; if all are percentages, give "
        f"{quote_units(metric, 'percent')}"
    )
    return _report(sentence, fractions, metric=metric, num_fractions=len(fractions), num_percentages=len(percentages))


def _report_groups(metric: str, scales: Scales) -> IntegrityFinding:
    groups = {
        scale: list_first([f"'{group}'" for (_, group), its_scale in scales.items() if its_scale == scale], 3)
        for scale in (FRACTION, PERCENT)
    }
    sentence = (
        f"{metric} is a fraction in {groups[FRACTION]} and a percentage in {groups[PERCENT]}; each group is compared "
        f"in its own unit. {quote_units(metric, 'convert')} multiplies the fractions by 100; if all values are "
        f"percentages, give {quote_units(metric, 'percent')}"
    )
    return _report(sentence, metric=metric)


def _report_conversion(metric: str, cells: Sequence[Cell], why: str) -> IntegrityFinding:
    sentence = f"{metric}: {_count(cells)} multiplied by 100, {why} ({_show(cells)})"
    return _report(sentence, cells, is_fault=False, metric=metric)


def _compare_metrics(metrics: Sequence[str], units: Units) -> Iterator[IntegrityFinding]:
    """Note metrics of different units; nothing is compared across metrics, so this is no fault."""
    by_scale: dict[float, list[str]] = {}
    for metric in metrics:
        scales = units.list_scales(metric)
        if len(scales) == 1:
            by_scale.setdefault(scales.pop(), []).append(metric)
    if len(by_scale) > 1:
        sentence = (
            f"written as fractions: {list_first(by_scale[FRACTION])}; in percent: {list_first(by_scale[PERCENT])}; "
            "each metric is compared in its own unit"
        )
        yield _report(sentence, is_fault=False, metrics=[*by_scale[FRACTION], *by_scale[PERCENT]])


def _count(cells: Sequence[Cell]) -> str:
    arms = list_first(list(dict.fromkeys(f"'{cell.arm}'" for cell in cells)), 3)
    return f"{len(cells)} {'value' if len(cells) == 1 else 'values'} of {arms}"


def _show(cells: Sequence[Cell]) -> str:
    return list_first([f"{cell.text}, {cell.place}" for cell in cells], 1)
