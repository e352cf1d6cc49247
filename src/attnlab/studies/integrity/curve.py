"""Whether runs were still improving when they ended: what an arm gains in the last fifth of its learning curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .table import Cell, value_of

LAST = 0.8
"""The last fifth of training begins at this share of its steps."""
NEAREST = 0.6
"""A curve without a value between this share and the end does not show the last fifth."""


def measure_late_gain(cells: Sequence[Cell], end: float, is_log: bool) -> float | None:
    """Return the mean increase of an arm's runs in the last fifth of the steps up to `end`; None if not recorded.

    The value at four fifths is interpolated. is_log: values are perplexities, and the increase is one of logarithms.
    """
    by_run: dict[str, dict[float, float]] = {}
    for cell in cells:
        if cell.step is not None and 0 <= cell.step <= end and cell.value is not None:
            value = value_of(cell)
            if not is_log or value > 0:
                by_run.setdefault(cell.seed, {})[cell.step] = math.log(value) if is_log else value
    gains = [gain for curve in by_run.values() if (gain := _gain(curve, end)) is not None]
    return sum(gains) / len(gains) if gains else None


def _gain(curve: Mapping[float, float], end: float) -> float | None:
    """Return the increase of one run between four fifths of the steps and the end."""
    middle = LAST * end
    if end not in curve or not any(NEAREST * end <= step < end for step in curve):
        return None
    before = max((step for step in curve if step <= middle), default=None)
    after = min(step for step in curve if step >= middle)
    if before is None:
        return None
    share = 0.0 if after == before else (middle - before) / (after - before)
    return curve[end] - (curve[before] + share * (curve[after] - curve[before]))
