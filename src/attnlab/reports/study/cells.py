"""The results as cells to read: one column a question, each cell with the value it is sorted by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attnlab.statistics import Comparison
from attnlab.statistics.account import show, show_p, signed

from .results import Row

MOST_DECIMALS = 12


@dataclass(frozen=True)
class Cell:
    """What is read, and the number that it is sorted by where it is one."""

    text: str
    number: float | None = None
    is_number: bool = False
    """Whether its column holds numbers, also where this cell has none."""


def number(value: float | None, write: Callable[[float], str] = show) -> Cell:
    """Write a number, or a dash where there is none."""
    if value is None or math.isnan(value):
        return Cell("–", None, True)
    return Cell(write(value), value, True)


def whole(value: float) -> str:
    """Write a number without decimals."""
    return f"{value:,.0f}"


def figure(value: float) -> str:
    """Write a figure with four digits."""
    return f"{value:.4g}".replace("-", "−")


def seconds(value: float) -> str:
    """Write a span of time."""
    return f"{value:.3g} s" if value < 600 else f"{value / 60:,.0f} min"


def difference_in_words(comparison: Comparison) -> str:
    """Write a difference, and its interval where it has one."""
    shown = interval(comparison)
    unit = " %" if comparison.question.scale == "log" else ""
    return signed_to(comparison.difference, decimals(comparison)) + unit + ("" if shown == "–" else f" {shown}")


def interval(comparison: Comparison | None) -> str:
    """Write an interval; one pair alone has none."""
    if comparison is None or not has_interval(comparison):
        return "–"
    low, high = (signed_to(end, decimals(comparison)) for end in comparison.interval)
    return f"[{low}, {high}]"


def has_interval(comparison: Comparison) -> bool:
    """Tell whether both ends are numbers."""
    return all(map(math.isfinite, comparison.interval))


def decimals(comparison: Comparison) -> int | None:
    """Return how many decimals show two digits of half the interval, and no end as 0 that is none; None for any."""
    low, high = comparison.interval
    if not has_interval(comparison) or low == high:
        return None
    smallest = min(abs(end) for end in (high - low, low, high) if end)
    wanted = 1 - math.floor(math.log10((high - low) / 2))
    needed = -math.floor(math.log10(2 * smallest))
    return min(max(0, wanted, needed), MOST_DECIMALS)


def signed_to(value: float, places: int | None) -> str:
    """Write a difference with its sign and so many decimals."""
    return signed(value) if places is None else f"{value:+.{places}f}".replace("-", "−")


def compared(row: Row) -> Comparison | None:
    """Return the comparison of an arm with the baseline, where there is one."""
    return None if row.answer is None else row.answer.comparison


def is_apart(row: Row) -> bool:
    """Tell whether an arm is answered without being compared: its difference would mislead."""
    return row.answer is not None and row.answer.verdict.startswith("NOT COMPARABLE")


def fair(row: Row) -> Comparison | None:
    """Return the comparison of an arm, where it can be compared."""
    return None if is_apart(row) else compared(row)


def difference(row: Row) -> Cell:
    """Write the difference to the baseline."""
    comparison = fair(row)
    if comparison is None:
        return number(None)
    return number(comparison.difference, lambda value: signed_to(value, decimals(comparison)))


def verdict(row: Row) -> Cell:
    """Write the verdict; the baseline has none, and nothing has while runs are missing."""
    if row.is_baseline:
        return Cell("baseline")
    return Cell("–" if row.answer is None else row.answer.verdict)


def stability(row: Row) -> Cell:
    """Write whether an arm's seeds vary more, or less."""
    comparison = fair(row)
    return Cell("–" if comparison is None else comparison.stability)


def p_value(row: Row) -> Cell:
    """Write the p of the comparison."""
    comparison = fair(row)
    return number(None if comparison is None else comparison.p, lambda p: show_p(p).removeprefix("p = "))


COLUMNS: Mapping[str, Callable[[Row], Cell]] = {
    "arm": lambda row: Cell(row.arm),
    "stage": lambda row: Cell(row.stage),
    "size": lambda row: Cell(row.size),
    "figure": lambda row: Cell(row.figure or "–"),
    "mean": lambda row: number(row.summary.mean, figure),
    "SD": lambda row: number(row.summary.sd),
    "seeds": lambda row: number(row.summary.n, whole),
    "failed": lambda row: number(row.num_lost, whole),
    "difference": difference,
    "interval": lambda row: Cell(interval(fair(row))),
    "p": p_value,
    "verdict": verdict,
    "stability": stability,
    "tokens/s": lambda row: number(row.tokens_per_second, whole),
    "training": lambda row: number(row.seconds, seconds),
    "parameters": lambda row: number(row.parameters("total"), whole),
    "trained": lambda row: number(row.parameters("trained"), whole),
}
"""What is asked of each arm, and what answers it."""
