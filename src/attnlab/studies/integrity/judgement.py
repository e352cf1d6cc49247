"""`judge` puts every integrity check to a table, and sets the analysis of its last step beside what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .analysis import Analysis, analyse, check_claims
from .budgets import check_budgets
from .finding import Finding
from .lone_seed import check_lone_seed
from .possibility import check_possibility
from .predictions import check_predictions
from .repetition import check_repetition
from .summaries import check_summaries
from .table import ResultTable


@dataclass(frozen=True)
class Request:
    """What the user says besides the table: the size of the evaluation set, a summary, and what is worth having."""

    num_examples: int | None = None
    summary: str | None = None
    smallest: float | None = None


@dataclass(frozen=True)
class Judgement:
    """Everything that was found in a table, and what it shows."""

    table: ResultTable
    findings: tuple[Finding, ...]
    analyses: tuple[Analysis, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.is_fault)

    @property
    def is_clean(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "table": self.table.name,
            "read_as": list(self.table.layout),
            "baseline": self.table.baseline,
            "arms": self.table.arms,
            "groups": self.table.groups,
            "metrics": self.table.metrics,
            "is_clean": self.is_clean,
            "findings": [finding.record() for finding in self.findings],
            "analyses": [analysis.record() for analysis in self.analyses],
        }


def judge(table: ResultTable, request: Request | None = None) -> Judgement:
    """Examine a table."""
    request = request or Request()
    repeated = list(check_repetition(table))
    analyses = _analyses(table, repeated, request.smallest)
    findings = [
        *repeated,
        *check_predictions(table),
        *check_possibility(table, request.num_examples),
        *(check_lone_seed(table, analyses[-1].step) if analyses else ()),
        *check_budgets(table),
        *(check_claims(analyses[-1]) if analyses else ()),
        *(check_summaries(table, request.summary) if request.summary is not None else ()),
    ]
    return Judgement(table, tuple(findings), tuple(analyses))


def _analyses(table: ResultTable, repeated: Sequence[Finding], smallest: float | None) -> list[Analysis]:
    """Analyse the last step; where its values were there before, also the last one that has its own."""
    if not table.steps:
        return []
    last, faulty = table.steps[-1], {step for finding in repeated for step in finding.data["steps"]}
    if last not in faulty:
        return [analyse(table, last, smallest)]
    before = [step for step in table.steps if step not in faulty]
    found = [analyse(table, last, smallest, "with repeated values")]
    return [*found, analyse(table, before[-1], smallest, "the last with values of its own")] if before else found
