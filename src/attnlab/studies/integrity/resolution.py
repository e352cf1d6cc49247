"""The resolution of a metric: the decimals of its values, or 1/n for a fraction of n examples.

Two seeds do not agree to 15 digits by chance, but often on a multiple of 1/100.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .metrics import COUNTED, SETS, kind_of, scale_of
from .table import Cell, value_of

MOST_EXAMPLES = 100_000
FITTING = 0.9
"""n is accepted if this share of distinct values are multiples of 1/n, so that one fault does not hide it."""
BLOCK = 2000


@dataclass(frozen=True)
class Resolution:
    """The smallest step between values of a metric, their rounding, and the n that they are fractions of."""

    step: float
    rounding: float
    num_examples: int | None = None


def find_resolution(metric: str, cells: Iterable[Cell]) -> Resolution:
    """Find the resolution of a metric's values."""
    known = [cell for cell in cells if cell.value is not None]
    values = np.unique([value_of(cell) for cell in known])
    rounding = max(10.0 ** -max((decimals_of(cell.text) for cell in known), default=0), 1e-12 * _largest(values))
    scale = scale_of(metric, values.tolist()) or 1.0
    counts = {cell.num_examples for cell in known} if kind_of(metric) in COUNTED else {None}
    # A number of examples that the table gives holds whatever single values say.
    given = None if None in counts else max((n for n in counts if n is not None), default=None)
    num_examples = given or (smallest_count(values, scale, rounding) if values.size else None)
    step = rounding if num_examples is None else max(rounding, scale / num_examples)
    return Resolution(step, rounding, num_examples)


def decimals_of(text: str) -> int:
    """Count the digits after the point; an exponent moves it."""
    mantissa, _, exponent = text.lower().removesuffix("%").partition("e")
    digits = len(mantissa.partition(".")[2])
    shift = int(exponent) if exponent.lstrip("+-").isdigit() else 0
    return max(0, min(digits - shift, 17))


def fits(values: NDArray[np.float64], n: int, scale: float, rounding: float) -> NDArray[np.bool_]:
    """Tell for each value whether it is a multiple of 1/n, within its rounding."""
    counts = values * n / scale
    slack = n / scale * rounding / 2 * (1 + 1e-6) + 1e-9 * n
    found: NDArray[np.bool_] = np.abs(counts - np.round(counts)) <= slack
    return found


def is_informative(n: int, scale: float, rounding: float) -> bool:
    """Tell whether few rounded numbers are multiples of 1/n, so that being one is evidence."""
    return n / scale * rounding < 0.2


def smallest_count(values: NDArray[np.float64], scale: float, rounding: float) -> int | None:
    """Return the smallest n such that nearly all values are multiples of 1/n; None if there is none."""
    few = values[:: max(1, len(values) // 12)]
    for start in range(1, MOST_EXAMPLES, BLOCK):
        counts = np.arange(start, start + BLOCK)
        scaled = few[None, :] * counts[:, None] / scale
        slack = counts / scale * rounding / 2 * (1 + 1e-6) + 1e-9 * counts
        near = np.abs(scaled - np.round(scaled)) <= slack[:, None]
        for n in counts[near.mean(axis=1) >= FITTING - 0.15]:
            if fits(values, int(n), scale, rounding).mean() >= FITTING:
                return int(n)
    return None


def known_set(metric: str, values: NDArray[np.float64], scale: float, rounding: float) -> int | None:
    """Return the size of the known evaluation set that nearly all values fit; None if there is none."""
    if kind_of(metric) not in COUNTED or len(values) < 5:
        return None
    for n in SETS:
        if is_informative(n, scale, rounding) and fits(values, n, scale, rounding).mean() >= FITTING:
            return n
    return None


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max()) if values.size else 0.0
