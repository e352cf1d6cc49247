"""`judge` applies every integrity check to a table, and analyses it without the values that are impossible."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnlab.statistics.formatting import signed

from .analysis import PRESUMED, AnalysisTerms, ComparisonRow, TableAnalysis, analyse, check_pairs, check_seeds
from .checks.averages import check_averages
from .checks.budgets import check_budgets
from .checks.differences import check_differences
from .checks.impossible_spreads import find_impossible_spreads
from .checks.impossible_values import ImpossibleValues, find_impossible
from .checks.left_out import check_left_out
from .checks.means import check_means, check_spread_of_one_seed
from .checks.predictions import check_predictions
from .checks.repetition import check_repetition
from .checks.seeds import check_lone_seed, check_missing
from .checks.spread_units import settle_spread_units
from .checks.summaries import check_stated_summaries, check_summaries
from .checks.units import describe_units, describe_unused_units, settle_units
from .finding import IntegrityFinding
from .options import JudgeOptions
from .tables.table import Cell, ResultTable


@dataclass(frozen=True)
class Judgement:
    """The findings and analyses of a table. left_out: cells that were not analysed. changes: what that changes.

    units: the unit of each metric that has limits, in words.
    """

    table: ResultTable
    findings: tuple[IntegrityFinding, ...]
    analyses: tuple[TableAnalysis, ...]
    primary: tuple[str, ...] = ()
    left_out: tuple[Cell, ...] = ()
    changes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    presumed: tuple[str, ...] = PRESUMED

    @property
    def faults(self) -> tuple[IntegrityFinding, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.is_fault)

    @property
    def is_clean(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        table = self.table
        axes = {"baseline": table.baseline, "arms": table.arms, "groups": table.groups, "metrics": table.metrics}
        findings = [finding.record() for finding in self.findings]
        left_out = [{"value": cell.text, "place": cell.place} for cell in self.left_out]
        analyses = [analysis.record() for analysis in self.analyses]
        about = {
            "table": table.name,
            "read_as": [*table.layout, *self.units],
            "map": table.mapping,
            **axes,
            "primary": list(self.primary),
        }
        checks = {"is_clean": self.is_clean, "findings": findings, "left_out": left_out, "changes": list(self.changes)}
        return {**about, **checks, "analyses": analyses, "presumed": list(self.presumed)}


def judge(table: ResultTable, options: JudgeOptions | None = None) -> Judgement:
    """Examine a table."""
    options = options or JudgeOptions()
    table = table.with_num_examples(options.num_examples)
    asked = options.find_units(table)
    settled, units, mixed = settle_units(table, asked)
    settled, other_units, of_spreads = settle_spread_units(settled, units, asked)
    impossible = [*find_impossible(settled, units), *find_impossible_spreads(settled, units, other_units)]
    left_out = list(dict.fromkeys(cell for values in impossible for cell in values.cells))
    primary = options.find_primary(settled)
    smallest, floors = options.find_smallest(settled, units), options.find_floors(settled, units)
    wrong = [values.metric for values in impossible if values.metric]
    obstacles = other_units | {metric: f"most values of {metric} are impossible" for metric in wrong}
    terms = AnalysisTerms(
        units, smallest, floors, primary, obstacles, frozenset(left_out), options.is_paired, options.obstacles
    )
    if options.is_paired:
        check_pairs(settled)
    repeated = list(check_repetition(table))
    analyses = _analyse(settled, repeated, terms)
    possible = settled.without([*left_out, *units.fractions])
    findings = [*repeated, *mixed, *of_spreads, *check_predictions(table), *_explain(impossible, options.is_paired)]
    findings += check_lone_seed(possible, analyses[-1].step) if analyses else ()
    findings += [*check_spread_of_one_seed(table), *check_missing(settled), *check_budgets(table)]
    findings += [*check_seeds(analyses[-1].rows), *check_means(settled)] if analyses else ()
    findings += [
        *check_left_out(table, options.num_examples),
        *check_stated_summaries(table),
        *check_averages(table),
        *check_differences(table),
    ]
    findings += check_summaries(table, options.summary) if options.summary is not None else ()
    changes = tuple(_find_changes(settled, analyses[-1], terms)) if analyses and left_out else ()
    ordered = sorted(findings, key=lambda finding: not finding.is_fault)
    unit_words = (
        *describe_units(settled, units),
        *describe_unused_units(table, asked, {finding.data["metric"] for finding in of_spreads}),
    )
    return Judgement(settled, tuple(ordered), tuple(analyses), tuple(primary), tuple(left_out), changes, unit_words)


def _analyse(table: ResultTable, repeated: Sequence[IntegrityFinding], terms: AnalysisTerms) -> list[TableAnalysis]:
    """Analyse the last step; if its values repeat earlier ones, also the last step with its own values."""
    if not table.steps:
        return []
    last, faulty = table.steps[-1], {step for it in repeated if it.is_fault for step in it.data["steps"]}
    if last not in faulty:
        return [analyse(table, last, terms)]
    before = [step for step in table.steps if step not in faulty]
    analyses = [analyse(table, last, terms, "with repeated values")]
    return analyses + [analyse(table, step, terms, "the last with its own values") for step in before[-1:]]


def _explain(impossible: Sequence[ImpossibleValues], is_paired: bool) -> Iterator[IntegrityFinding]:
    for values in impossible:
        pronoun = {0: "", 1: "It is", 2: "Both are"}.get(len(values.cells), "They are")
        pairs = ", and so is the value of the same seed in the other arm of each comparison" if is_paired else ""
        ending = f". {pronoun} left out of the analysis{pairs}" if pronoun else ""
        yield replace(values.finding, sentence=f"{values.finding.sentence}{ending}")


def _find_changes(table: ResultTable, analysis: TableAnalysis, terms: AnalysisTerms) -> Iterator[str]:
    """Describe how the comparisons would change with the cells that were left out."""
    with_all = analyse(table, analysis.step, replace(terms, left_out=frozenset()))
    others = {(row.metric, row.group, row.arm): row for row in with_all.rows}
    affected = {(cell.metric, cell.group, cell.arm) for cell in terms.left_out}
    for row in analysis.rows:
        other = others[row.metric, row.group, row.arm]
        is_affected = affected & {(row.metric, row.group, arm) for arm in (row.arm, table.baseline)}
        if is_affected or row.verdict != other.verdict:
            yield f"{row.name}: without them {_show(row)}; with them {_show(other)}"


def _show(row: ComparisonRow) -> str:
    if row.comparison is None:
        return row.verdict
    return f"{signed(row.comparison.difference)}{row.comparison.question.unit}, {row.verdict}"
