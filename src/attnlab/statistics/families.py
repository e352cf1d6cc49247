"""Many comparisons at once: Holm (1979) over the primary ones of a study, Benjamini and Hochberg (1995) elsewhere.

Each comparison gets the level at which its own p decides just as the procedure does, so that its interval and its
verdict agree with it.
"""

from __future__ import annotations

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
    """One p among others: adjusted for them, and the level that the p itself is compared with."""

    p: float
    adjusted: float
    level: float
    role: Role
    method: str
    size: int = 1
    """Comparisons of the family."""


def adjust(ps: Mapping[Key, float], role: Role = "primary", alpha: float = 0.05) -> dict[Key, Adjusted]:
    """Adjust each p for being one of many. A comparison without a p counts as one that shows nothing."""
    if role not in METHODS:
        raise StatisticsError(f"a family is 'primary' or 'exploratory', and {role!r} came")
    if not ps:
        return {}
    values = np.array([1.0 if math.isnan(p) else p for p in ps.values()])
    adjusted, levels = _holm(values, alpha) if role == "primary" else _false_discovery(values, alpha)
    return {
        key: Adjusted(p, math.nan if math.isnan(p) else fixed, level, role, METHODS[role], len(ps))
        for key, p, fixed, level in zip(ps, ps.values(), adjusted, levels, strict=True)
    }


def _holm(values: Numbers, alpha: float) -> tuple[list[float], list[float]]:
    """Compare the smallest p with α/m, the next with α/(m − 1), and so on until one does not pass, nor the rest."""
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


def _false_discovery(values: Numbers, alpha: float) -> tuple[list[float], list[float]]:
    """Take α·k/m where k pass: the level of intervals for what was selected (Benjamini and Yekutieli 2005)."""
    num, order = len(values), np.argsort(values)
    scaled = values[order] * (num / np.arange(1, num + 1))
    adjusted = np.empty(num)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    num_passed = int((adjusted <= alpha).sum())
    return adjusted.tolist(), [alpha * max(num_passed, 1) / len(values)] * len(values)
