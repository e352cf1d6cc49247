"""Many comparisons at once: Holm (1979) over the primary ones of a study, Benjamini and Hochberg (1995) elsewhere.

Each comparison gets the level at which its own p decides just as the procedure does, so that its interval and its
verdict agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from scipy import stats

from attnlab.errors import StatisticsError

from .account import plain, show_p, signed
from .arms import compare
from .comparison import Comparison
from .question import ALPHA, Question
from .scores import Numbers
from .verdict import DEGENERATE, NEITHER_LEARNED, NOT_COMPARABLE, TOO_FEW

Role = Literal["primary", "exploratory"]
METHODS: Mapping[Role, str] = {"primary": "Holm", "exploratory": "Benjamini–Hochberg"}
SHOW_NOTHING = (NOT_COMPARABLE, TOO_FEW, NEITHER_LEARNED, DEGENERATE)
"""Outcomes that no p leads to: in a family they count with a p of 1."""

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


@dataclass(frozen=True)
class Family:
    """Comparisons by name that are one family, and what being many does to each p."""

    role: Role
    comparisons: Mapping[str, Comparison]
    adjusted: Mapping[str, Adjusted]

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "role": self.role,
            "comparisons": {name: comparison.record() for name, comparison in self.comparisons.items()},
            "adjusted": {name: plain(vars(adjusted)) for name, adjusted in self.adjusted.items()},
        }

    def __str__(self) -> str:
        lines = [f"{self.role}, {len(self.comparisons)} comparisons, {self.method}"]
        for name, comparison in self.comparisons.items():
            low, high = comparison.interval
            lines.append(
                f"  {name}: {comparison.verdict}; {signed(comparison.difference)} [{signed(low)}, {signed(high)}], "
                f"{show_p(comparison.p)}, adjusted {show_p(self.adjusted[name].adjusted)}; {comparison.stability}"
            )
        return "\n".join(lines)

    @property
    def method(self) -> str:
        """How the family was adjusted for."""
        return next(iter(self.adjusted.values())).method if self.adjusted else ""


def compare_many(
    baseline_scores: Any,
    variants: Mapping[str, Any],
    paired: bool = True,
    question: Question | None = None,
    role: Role = "primary",
) -> Family:
    """Compare each variant with the baseline; the metric is the study's primary one, or exploratory."""
    asked = question or Question()
    if not isinstance(variants, Mapping) or not variants:
        raise StatisticsError("compare_many takes the variants' scores by name: {'cosine': […], 'additive': […]}")
    settings = {name: value for name, value in vars(asked).items() if name != "smallest"}
    alone = {
        name: compare(baseline_scores, scores, paired, asked.smallest, **settings) for name, scores in variants.items()
    }
    settled = conclude_family(alone, asked.alpha, role)
    return Family(role, settled, {name: found.family for name, found in settled.items() if found.family is not None})


def conclude_family(
    comparisons: Mapping[Key, Comparison], alpha: float = ALPHA, role: Role = "primary"
) -> dict[Key, Comparison]:
    """Decide every comparison again as one of a family, whatever figures, sizes and phases they are of.

    What shows nothing, such as NOT COMPARABLE, counts with a p of 1. Declared looks and open-ended ones may be among
    them: the family adjusts the smallest alpha at which each would end its comparison.
    """
    adjusted = adjust({key: family_p(comparison) for key, comparison in comparisons.items()}, role, alpha)
    return {key: found.redecide(adjusted[key].level, adjusted[key]) for key, found in comparisons.items()}


def family_p(comparison: Comparison) -> float:
    """Return the p that a family adjusts: the smallest alpha at which the verdict would be a difference."""
    if comparison.decision.outcome in SHOW_NOTHING:
        return 1.0
    known = comparison.known
    return comparison.question.family_p(comparison.p, known.num_seeds, known.num_runs)


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
    adjusted = stats.false_discovery_control(values).tolist()
    num_passed = sum(p <= alpha for p in adjusted)
    return adjusted, [alpha * max(num_passed, 1) / len(values)] * len(values)
