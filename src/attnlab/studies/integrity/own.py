"""`examine` applies the integrity checks to a study's own runs; the ledger is enough, without data or models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from attnlab.statistics.verdict import NOT_COMPARABLE

from .analysis import Row, check_seeds
from .fairness import check_given, check_parameters, check_settings
from .finding import IntegrityFinding
from .held_out import check_held_out
from .leaks import check_audited, check_leaks
from .left_out import check_left_out
from .lone_seed import check_lone_seed
from .possibility import check_possibility
from .predictions import is_one_answer, one_answer
from .recorded import check_recorded
from .repetition import check_repetition
from .runs import PhaseRuns

if TYPE_CHECKING:
    from ..answers.study_folder import Record


def examine(record: Record) -> tuple[IntegrityFinding, ...]:
    """Apply every check to what a study has so far; faults come first."""
    found = [*check_leaks(record), *check_held_out(record)]
    for phase in record.design.phases:
        found += examine_phase(PhaseRuns(record, phase.name))
    found += [*check_claimed(record), *check_settings(record), *check_audited(record), *check_left_out(record)]
    return tuple(sorted(found, key=lambda finding: not finding.is_fault))


def examine_phase(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Apply the checks of a table to the runs of one phase."""
    table = runs.table
    yield from check_repetition(table)
    yield from check_answers(runs)
    yield from check_possibility(table)
    last = runs.last_table()
    for step in last.steps:
        yield from check_lone_seed(last, step)
    yield from check_given(runs)
    yield from check_recorded(runs)
    yield from check_parameters(runs)


def check_answers(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Find runs that give one answer to everything; the seeds of an arm are reported together."""
    together: dict[tuple[str, str], list[int]] = {}
    given_by: dict[tuple[str, str], tuple[Mapping[str, int], float | None]] = {}
    for run, given, usual in runs.answers():
        if is_one_answer(given, usual):
            key = runs.name(run), max(given, key=lambda answer: given[answer])
            together.setdefault(key, []).append(run.seed)
            given_by[key] = given, usual
    for (name, answer), seeds in together.items():
        whose = f"{name}, {'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}"
        yield one_answer(whose, *given_by[name, answer])


def check_claimed(record: Record) -> Iterator[IntegrityFinding]:
    """Report comparisons with too few seeds; no fault, since a study gives no verdict on them."""
    rows = []
    for one in record.answers:
        if one.comparison is not None and not one.verdict.startswith(NOT_COMPARABLE.partition("(")[0]):
            group = f"{one.phase}, {one.size}"
            rows.append(Row(group, one.figure, one.arm, None, one.comparison))
    for finding in check_seeds(rows):
        yield replace(finding, is_fault=False)
