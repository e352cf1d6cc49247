"""`examine` applies the integrity checks to a study's own runs; the ledger is enough, without data or models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.training.plain import decode_nonfinite

from ..analysis import ComparisonRow, check_seeds
from ..checks.budgets import check_budgets
from ..checks.impossible_values import find_impossible
from ..checks.predictions import is_one_answer, report_one_answer
from ..checks.repetition import check_repetition
from ..checks.seeds import check_lone_seed
from ..checks.units import read_units
from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.table import join_words
from .audits import check_audited, check_leaks
from .phase_runs import PhaseRuns

if TYPE_CHECKING:
    from ...answers.study_folder import Record
    from ...ledger.database import Ledger

MAX_OVERLAP = 0.01
"""From this share on it is a fault: memorised examples can change an accuracy by as much, and many studies look for
differences of one point. Less is only noted, since published datasets contain some such rows."""


def examine(record: Record) -> tuple[IntegrityFinding, ...]:
    """Apply every check to what a study has so far; faults come first."""
    findings = [*check_leaks(record), *_check_overlap(record)]
    for phase in record.design.phases:
        findings += _examine_phase(PhaseRuns(record, phase.name))
    findings += [*_check_seeds(record), *_check_settings(record), *check_audited(record), *_check_left_out(record)]
    return tuple(sorted(findings, key=lambda finding: not finding.is_fault))


def _examine_phase(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    yield from check_repetition(runs.table)
    yield from _check_answers(runs)
    yield from (impossible.finding for impossible in find_impossible(runs.table, read_units(runs.table)))
    for step in runs.last_table.steps:
        yield from check_lone_seed(runs.last_table, step)
    yield from _check_budgets(runs)
    yield from _check_recorded(runs)
    yield from _check_parameters(runs)


def _check_overlap(record: Record) -> Iterator[IntegrityFinding]:
    """Report held-out examples that were trained on, as the study counted them when it ran."""
    for overlap in record.overlaps:
        if overlap.num_found:
            data = {"source": overlap.source, "share": overlap.share, "num_held_out": overlap.num_held_out}
            is_fault = overlap.share >= MAX_OVERLAP
            yield IntegrityFinding(IntegrityKind.TRAINED_ON_HELD_OUT, overlap.sentence, is_fault, data=data)


def _check_answers(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Find runs that give one answer to everything; the seeds of an arm are reported together."""
    by_answer: dict[tuple[str, str, str], list[tuple[int, Mapping[str, int], float | None]]] = {}
    for run, counts, majority in runs.count_answers():
        if is_one_answer(counts, majority):
            key = runs.name_group(run), run.arm, max(counts, key=lambda answer: counts[answer])
            by_answer.setdefault(key, []).append((run.seed, counts, majority))
    for (group, arm, _), answers in by_answer.items():
        seeds = f"{'seeds' if len(answers) > 1 else 'seed'} {', '.join(str(seed) for seed, *_ in answers)}"
        title = join_words(f"arm '{arm}'", group)
        yield report_one_answer(f"{title}, {seeds}", *answers[-1][1:])


def _check_budgets(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Compare the budgets of the arms of a phase; no fault if the budget is all that an arm differs in."""
    design, stepped = runs.record.design, set[str]()
    for finding in check_budgets(runs.table):
        budgets, group = finding.data["arms"], finding.data["group"]
        if finding.data["what"] == "tokens" and group in stepped:
            continue  # more steps have more tokens
        if finding.data["what"] in ("step", "batch"):
            stepped.add(group)
        others = [arm for arm in budgets if budgets[arm] != budgets.get(design.baseline)]
        baseline = [design.arms[design.baseline].line(size) for size in design.sizes]
        if design.is_matched_by_steps:
            declared = f'{finding.sentence}; match = "{design.match}" chose them'
            finding = replace(finding, sentence=declared, is_fault=False)
        elif all([design.arms[arm].line(size) for size in design.sizes] == baseline for arm in others):
            finding = replace(finding, sentence=f"{finding.sentence}; they differ in nothing else", is_fault=False)
        yield finding


def _check_settings(record: Record) -> Iterator[IntegrityFinding]:
    arms = record.design.arms.items()
    settings = [f"'{name}' has {setting} = {value}" for name, arm in arms for setting, value in arm.set.items()]
    if settings:
        sentence = f"arms differ in more than the mechanism: {list_first(settings)}"
        yield IntegrityFinding(IntegrityKind.DIFFERENT_SETTINGS, sentence, is_fault=False)


def _check_parameters(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Note arms that train different numbers of parameters, as a mechanism may add some."""
    by_size: dict[str, dict[str, set[int]]] = {}
    for run, row in runs.ended:
        if "trained" in row.result.get("parameters", {}):
            arms = by_size.setdefault(run.size, {})
            arms.setdefault(run.arm, set()).add(row.result["parameters"]["trained"])
    for size, arms in by_size.items():
        if len({frozenset(counts) for counts in arms.values()}) > 1:
            shown = [f"'{arm}' {list_first([f'{n:,}' for n in sorted(counts)])}" for arm, counts in arms.items()]
            sentence = f"the arms of {runs.phase}, {size} train different numbers of parameters: {', '.join(shown)}"
            yield IntegrityFinding(IntegrityKind.DIFFERENT_PARAMETERS, sentence, is_fault=False, data={"size": size})


def _check_recorded(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Find figures that are not the mean of their per-example scores, or differ from their evaluation."""
    wrong = list[str]()
    for run, last in runs.last:
        evaluation = {line["step"]: line for line in runs.evaluations[run.id]}.get(last["step"], {})
        for name, value in decode_nonfinite(last["figures"]).items():
            scores = runs.load_scores(run, name)
            if scores is not None and len(scores) and not np.isclose(scores.mean(), value):
                mean = f"the mean of its {len(scores)} examples {scores.mean():.6g}"
                wrong.append(f"{run.title}: {name} {value:.6g}, and {mean}")
            recorded = evaluation.get(name, value)
            if not np.array_equal(recorded, value, equal_nan=True):
                shown = f"the evaluation of step {last['step']} {recorded:.6g}"
                wrong.append(f"{run.title}: {name} {value:.6g}, and {shown}")
    if wrong:
        sentence = f"{len(wrong)} figures of '{runs.phase}' differ from what was recorded with them: "
        yield IntegrityFinding(IntegrityKind.SUMMARY_DIFFERS, sentence + list_first(wrong, 3), places=tuple(wrong))


def _check_seeds(record: Record) -> Iterator[IntegrityFinding]:
    """Report comparisons with too few seeds; no fault, since a study gives no verdict on them."""
    rows = []
    for answer in record.answers:
        if answer.comparison is not None and not answer.comparison.question.obstacle:
            group = f"{answer.phase}, {answer.size}"
            rows.append(ComparisonRow(group, answer.figure, answer.arm, None, answer.comparison))
    for finding in check_seeds(rows):
        yield replace(finding, is_fault=False)


def count_left_out(ledger: Ledger, planned: Collection[str]) -> Counter[str]:
    """Count, by arm, the results of runs that do not belong to the current version of the study."""
    results = ledger.results()
    return Counter(row.arm for row in ledger.runs() if row.id in results and row.id not in planned)


def describe_left_out(counts: Counter[str]) -> str:
    """Describe the results of other versions."""
    shown = list_first([f"{number} of '{arm}'" for arm, number in counts.items()])
    number = sum(counts.values())
    return (
        f"{number} {'result is' if number == 1 else 'results are'} not of the study as it is now, but of versions with "
        f"other settings, data or phase files: {shown}"
    )


def _check_left_out(record: Record) -> Iterator[IntegrityFinding]:
    counts = count_left_out(record.ledger, {run.id for run in (*record.runs, *record.trials)})
    if counts:
        sentence = f"{describe_left_out(counts)}; if a version was chosen by its results, say so with the verdict"
        yield IntegrityFinding(IntegrityKind.RESULTS_LEFT_OUT, sentence, is_fault=False, data={"arms": dict(counts)})
