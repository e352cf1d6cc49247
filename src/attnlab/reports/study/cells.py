"""The results as table cells: one function per column; each cell has its text and the value it is sorted by."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attnlab.statistics import Comparison
from attnlab.statistics.formatting import show, show_p, show_value, signed
from attnlab.statistics.stability import UNKNOWN
from attnlab.studies.plan.audit_keys import LEAKS

from .results import ArmRow

MAX_DECIMALS = 12


@dataclass(frozen=True)
class TableCell:
    """The text of a cell, and the number it is sorted by, if it has one."""

    text: str
    number: float | None = None
    is_number: bool = False
    """Whether its column holds numbers, even if this cell has none."""


def make_number_cell(value: float | None, write: Callable[[float], str] = show) -> TableCell:
    """Write a number, or a dash if there is none."""
    if value is None or math.isnan(value):
        return TableCell("–", None, True)
    return TableCell(write(value), value, True)


def _format_count(value: float) -> str:
    return f"{value:,.0f}"


def _format_operations(value: float) -> str:
    unit = next((unit for unit in (1e18, 1e15, 1e12, 1e9, 1e6) if value >= unit), 1.0)
    prefix = {1e18: "E", 1e15: "P", 1e12: "T", 1e9: "G", 1e6: "M"}.get(unit, "")
    return f"{value / unit:.3g} {prefix}".rstrip()


def _format_seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 600 else f"{value / 60:,.0f} min"


def write_difference(comparison: Comparison) -> str:
    """Write a difference without its interval."""
    unit = " %" if comparison.question.scale == "log" else ""
    return f"{_format_signed(comparison.difference, _choose_decimals(comparison))}{unit}"


def format_comparison(comparison: Comparison) -> str:
    """Write a difference, and its interval if it has one."""
    interval = f" {_format_interval(comparison)}" if _has_interval(comparison) else ""
    return f"{write_difference(comparison)}{interval}"


def _format_interval(comparison: Comparison | None) -> str:
    if comparison is None or not _has_interval(comparison):
        return "–"
    low, high = (_format_signed(end, _choose_decimals(comparison)) for end in comparison.interval)
    return f"[{low}, {high}]"


def _has_interval(comparison: Comparison) -> bool:
    return all(map(math.isfinite, comparison.interval))


def _choose_decimals(comparison: Comparison) -> int | None:
    """Return the decimals that show two digits of half the width and do not round an end to 0; None for any."""
    low, high = comparison.interval
    if not _has_interval(comparison) or low == high:
        return None
    smallest = min(abs(end) for end in (high - low, low, high) if end)
    wanted = 1 - math.floor(math.log10((high - low) / 2))
    needed = -math.floor(math.log10(2 * smallest))
    return min(max(0, wanted, needed), MAX_DECIMALS)


def _format_signed(value: float, places: int | None) -> str:
    return signed(value) if places is None else f"{value:+.{places}f}".replace("-", "−")


def get_comparison(row: ArmRow) -> Comparison | None:
    """Return the comparison of an arm with the baseline, if there is one."""
    return None if row.answer is None else row.answer.comparison


def is_not_comparable(row: ArmRow) -> bool:
    """Whether an arm is not comparable, so that its difference must not be shown."""
    return row.answer is not None and row.answer.verdict.startswith("NOT COMPARABLE")


def has_leak(row: ArmRow) -> bool:
    """Whether the figures of an arm were measured with access to future tokens."""
    return is_not_comparable(row) and row.answer is not None and LEAKS in row.answer.verdict


def get_fair_comparison(row: ArmRow) -> Comparison | None:
    """Return the comparison of an arm, if it is comparable."""
    return None if is_not_comparable(row) else get_comparison(row)


def _make_difference_cell(row: ArmRow) -> TableCell:
    comparison = get_fair_comparison(row)
    if comparison is None:
        return make_number_cell(None)
    return make_number_cell(comparison.difference, lambda _: write_difference(comparison))


def _make_verdict_cell(row: ArmRow) -> TableCell:
    if row.is_baseline:
        return TableCell("baseline")
    return TableCell("–" if row.answer is None else row.answer.verdict)


def _make_stability_cell(row: ArmRow) -> TableCell:
    comparison = get_fair_comparison(row)
    return TableCell("–" if comparison is None or comparison.stability == UNKNOWN else comparison.stability)


def _make_p_cell(row: ArmRow) -> TableCell:
    comparison = get_fair_comparison(row)
    return make_number_cell(None if comparison is None else comparison.p, lambda p: show_p(p).removeprefix("p = "))


COLUMNS: Mapping[str, Callable[[ArmRow], TableCell]] = {
    "arm": lambda row: TableCell(row.arm),
    "phase": lambda row: TableCell(row.phase),
    "size": lambda row: TableCell(row.size),
    "figure": lambda row: TableCell(row.figure or "–"),
    "mean": lambda row: make_number_cell(row.summary.mean, show_value),
    "SD": lambda row: make_number_cell(row.summary.sd),
    "difference": _make_difference_cell,
    "interval": lambda row: TableCell(_format_interval(get_fair_comparison(row))),
    "verdict": _make_verdict_cell,
    "training": lambda row: make_number_cell(row.seconds, _format_seconds),
    "parameters": lambda row: make_number_cell(row.count_parameters("total"), _format_count),
    "seeds": lambda row: make_number_cell(row.summary.n, _format_count),
    "failed": lambda row: make_number_cell(row.num_lost, _format_count),
    "p": _make_p_cell,
    "stability": _make_stability_cell,
    "tokens/s": lambda row: make_number_cell(row.tokens_per_second, _format_count),
    "operations": lambda row: make_number_cell(row.operations, _format_operations),
    "trained": lambda row: make_number_cell(row.count_parameters("trained"), _format_count),
}
"""The columns of the results table, each with the function that makes its cell; what must be in sight comes first."""


def choose_columns(rows: Sequence[ArmRow]) -> list[str]:
    """Return the columns that say something: no phase if there is one, no failed runs if there are none."""
    cells = {name: {make_cell(row).text for row in rows} for name, make_cell in COLUMNS.items()}
    is_empty = {
        "phase": len(cells["phase"]) < 2, "size": len(cells["size"]) < 2, "failed": cells["failed"] <= {"0"},
        "stability": cells["stability"] <= {"–"}, "operations": cells["operations"] <= {"–"},
        "trained": all(row.count_parameters("trained") == row.count_parameters("total") for row in rows),
    }  # fmt: skip
    return [name for name in COLUMNS if not is_empty.get(name, False)]
