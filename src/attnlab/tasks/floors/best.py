"""The best of several strategies, by the direction of the figure."""

from __future__ import annotations

from collections.abc import Mapping

from ..scores import Reference


def best_of(values: Mapping[str, float], *, higher_is_better: bool) -> Reference:
    """Return the strategy whose value is the best, the first of equal ones."""
    sign = 1 if higher_is_better else -1
    strategy = max(values, key=lambda name: sign * values[name])
    return Reference(values[strategy], strategy)
