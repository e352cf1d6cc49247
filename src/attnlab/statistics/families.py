"""Multiple comparisons: Holm (1979) for the primary ones of a study, Benjamini and Hochberg (1995) for others.

Each comparison gets the level at which its own p-value gives the procedure's decision, so that interval and verdict
agree with it.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from attnlab.errors import StatisticsError

from .scores import Numbers

Role = Literal["primary", "exploratory"]
METHODS: Mapping[Role, str] = {"primary": "Holm", "exploratory": "Benjamini–Hochberg"}

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Adjusted:
    """A p-value of a family of `size`, the same adjusted, and the level that the unadjusted one is compared with."""

    p: float
    adjusted: float
    level: float
    role: Role
    method: str
    size: int = 1


def adjust(ps: Mapping[Key, float], role: Role = "primary", alpha: float = 0.05) -> dict[Key, Adjusted]:
    """Adjust p-values for multiple comparisons; a NaN counts as 1."""
    if role not in METHODS:
        raise StatisticsError(f"the role of a family must be 'primary' or 'exploratory', not {role!r}")
    if not ps:
        return {}
    values = np.array([1.0 if math.isnan(p) else p for p in ps.values()])
    adjusted, levels = _adjust_by_holm(values, alpha) if role == "primary" else _adjust_by_fdr(values, alpha)
    return {
        key: Adjusted(p, math.nan if math.isnan(p) else adjusted_p, level, role, METHODS[role], len(ps))
        for key, p, adjusted_p, level in zip(ps, ps.values(), adjusted, levels, strict=True)
    }


def _adjust_by_holm(values: Numbers, alpha: float) -> tuple[list[float], list[float]]:
    """Compare the smallest p with α/m, the next with α/(m − 1), and so on up to the first that does not pass."""
    adjusted, levels = [1.0] * len(values), [alpha] * len(values)
    largest, level, is_passing = 0.0, alpha, True
    for rank, place in enumerate(np.argsort(values, kind="stable").tolist()):
        left, p = len(values) - rank, float(values[place])
        if is_passing:
            level = alpha / left
            is_passing = p <= level
        largest = max(largest, min(1.0, left * p))
        adjusted[place], levels[place] = largest, level
    return adjusted, levels


def _adjust_by_fdr(values: Numbers, alpha: float) -> tuple[list[float], list[float]]:
    """Use level α·k/m if k pass, as for intervals of selected parameters (Benjamini and Yekutieli 2005)."""
    num, order = len(values), np.argsort(values)
    scaled = values[order] * (num / np.arange(1, num + 1))
    adjusted = np.empty(num)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    num_passed = int((adjusted <= alpha).sum())
    return adjusted.tolist(), [alpha * max(num_passed, 1) / len(values)] * len(values)
