"""Several variants against one baseline, as a family: each verdict is made at the level that the family leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from attnlab.errors import StatisticsError

from .account import plain, show_p, signed
from .comparison import Comparison, compare
from .families import Adjusted, Role, adjust
from .verdict import Question


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
    if asked.looks is not None:
        raise StatisticsError("looks are declared for one comparison; compare the arms of a family at the last look")
    first = {name: _compare(baseline_scores, scores, paired, asked) for name, scores in variants.items()}
    adjusted = adjust({name: comparison.p for name, comparison in first.items()}, role, asked.alpha)
    levels = {name: replace(asked, alpha=adjusted[name].level) for name in variants}
    settled = {name: _compare(baseline_scores, variants[name], paired, levels[name]) for name in variants}
    return Family(role, settled, adjusted)


def _compare(baseline: Any, variant: Any, paired: bool, question: Question) -> Comparison:
    return compare(
        baseline,
        variant,
        paired,
        question.smallest,
        higher_is_better=question.higher_is_better,
        alpha=question.alpha,
        obstacle=question.obstacle,
    )
