"""What a table shows at one step: every arm against the baseline, by group and metric, and what n cannot carry.

Seeds are compared unpaired: that two runs of a stranger's table share their seed's start is not known. The comparisons
of one metric are a family (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.statistics import Comparison, adjust, compare
from attnlab.statistics.account import plain, show_count
from attnlab.statistics.verdict import FEWEST_SEEDS

from .finding import Finding, listed
from .metrics import default_smallest, higher_is_better
from .table import Cell, ResultTable, show_step

CLAIM = "a claim that n cannot carry"
Scores = dict[str, float | None]
"""The score of each seed; None where its run has none."""


@dataclass(frozen=True)
class Row:
    """One arm against the baseline in one group and metric.

    comparison: at the level that the family leaves it. alone: as if it were the only one. adjusted: its p among others.
    """

    group: str
    metric: str
    arm: str
    comparison: Comparison
    alone: Comparison
    adjusted: float

    @property
    def name(self) -> str:
        """What is compared, in words."""
        return " ".join(filter(None, (self.arm, self.group, self.metric)))

    @property
    def num_seeds(self) -> int:
        """The seeds of the smaller arm."""
        return min(self.comparison.known.baseline.n, self.comparison.known.variant.n)


@dataclass(frozen=True)
class Analysis:
    """All comparisons of one step, and why it was looked at."""

    step: float | None
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def title(self) -> str:
        """Name the step, and what is to be known of it."""
        return f"{show_step(self.step)}{f' ({self.note})' if self.note else ''}"

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        named = [
            {
                "group": row.group,
                "metric": row.metric,
                "arm": row.arm,
                "adjusted_p": plain(row.adjusted),
                **row.comparison.record(),
                "plan": row.alone.record()["plan"],
            }
            for row in self.rows
        ]
        return {"step": self.step, "note": self.note, "comparisons": named}


def analyse(table: ResultTable, step: float | None, smallest: float | None = None, note: str = "") -> Analysis:
    """Compare every arm with the baseline at one step."""
    rows = [row for metric in table.metrics for row in _family(table, step, metric, smallest)]
    return Analysis(step, tuple(rows), note)


def _family(table: ResultTable, step: float | None, metric: str, smallest: float | None) -> Iterator[Row]:
    cells = [cell for cell in table.at(step) if cell.metric == metric]
    asked = smallest if smallest is not None else default_smallest(metric, table.of_metric(metric))
    pairs = list(_pairs(table, cells))
    terms: dict[str, Any] = {"paired": False, "smallest": asked, "higher_is_better": higher_is_better(metric)}
    alone = [compare(baseline, variant, **terms) for _, _, baseline, variant in pairs]
    family = adjust({str(number): comparison.p for number, comparison in enumerate(alone)})
    for (group, arm, baseline, variant), by_itself, among in zip(pairs, alone, family.values(), strict=True):
        settled = compare(baseline, variant, **terms, alpha=among.level)
        yield Row(group, metric, arm, settled, by_itself, among.adjusted)


def _pairs(table: ResultTable, cells: Sequence[Cell]) -> Iterator[tuple[str, str, Scores, Scores]]:
    for group in table.groups:
        baseline = _scores(cells, group, table.baseline)
        for arm in table.arms[1:]:
            variant = _scores(cells, group, arm)
            if _is_any(baseline) and _is_any(variant):
                yield group, arm, baseline, variant


def _scores(cells: Sequence[Cell], group: str, arm: str) -> Scores:
    return {cell.seed: cell.value for cell in cells if cell.group == group and cell.arm == arm}


def _is_any(scores: Scores) -> bool:
    return any(score is not None for score in scores.values())


def check_claims(analysis: Analysis) -> Iterator[Finding]:
    """Find comparisons that so few seeds cannot carry, and say what they would take."""
    weak = [row for row in analysis.rows if row.num_seeds < FEWEST_SEEDS]
    if not weak:
        return
    counts = sorted({row.num_seeds for row in weak})
    needs = [f"{row.name} {_needed(row)}" for row in weak]
    yield Finding(
        CLAIM,
        f"{len(weak)} of {len(analysis.rows)} comparisons have {' or '.join(map(str, counts))} seeds an arm, and fewer "
        f"than {FEWEST_SEEDS} carry no verdict: {listed(needs)}",
        data={"num_seeds": counts, "comparisons": [row.name for row in weak]},
    )


def _needed(row: Row) -> str:
    plan = row.alone.plan
    seeds = plan.seeds[0.8]
    if math.isnan(seeds):
        return "(one seed: no spread to plan from)"
    return f"(a difference of {plan.smallest:.3g} would need {show_count(seeds)})"
