"""What the arms of a study differ in besides the mechanism: budgets, settings and numbers of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .budgets import check_budgets
from .finding import IntegrityFinding, IntegrityKind, list_first
from .runs import PhaseRuns

if TYPE_CHECKING:
    from ..answers.study_folder import Record
    from ..file.design import Design


def check_given(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Compare the budgets of the arms of a phase; no fault if the budget is all that an arm differs in."""
    design, stepped = runs.record.design, set[str]()
    for finding in check_budgets(runs.table):
        given, group = finding.data["arms"], finding.data["group"]
        if finding.data["what"] == "tokens" and group in stepped:
            continue  # more steps have more tokens
        if finding.data["what"] in ("step", "batch"):
            stepped.add(group)
        odd = [arm for arm in given if given[arm] != given.get(design.baseline)]
        is_subject = all(is_same_mechanism(design, arm) for arm in odd)
        said = finding.sentence if not is_subject else f"{finding.sentence}; they differ in nothing else"
        yield replace(finding, sentence=said, is_fault=not is_subject)


def is_same_mechanism(design: Design, arm: str) -> bool:
    """Tell whether an arm has the baseline's mechanism, so that the study is about its settings."""
    ours, theirs = design.arms[arm], design.arms[design.baseline]
    return all(ours.line(size) == theirs.line(size) for size in design.sizes)


def check_settings(record: Record) -> Iterator[IntegrityFinding]:
    """Note the settings that arms override."""
    arms = record.design.arms.items()
    own = [f"'{name}' has {where} = {value}" for name, arm in arms for where, value in arm.set.items()]
    if own:
        yield IntegrityFinding(
            IntegrityKind.DIFFERENT_SETTINGS,
            f"arms differ in more than the mechanism: {list_first(own)}",
            is_fault=False,
        )


def check_parameters(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Note arms that train different numbers of parameters, as a mechanism may add some."""
    found: dict[str, dict[str, set[int]]] = {}
    for run, row in runs.ended:
        if "trained" in row.result.get("parameters", {}):
            arms = found.setdefault(run.size, {})
            arms.setdefault(run.arm, set()).add(row.result["parameters"]["trained"])
    for size, arms in found.items():
        if len({frozenset(counts) for counts in arms.values()}) > 1:
            shown = ", ".join(
                f"'{arm}' {list_first([f'{n:,}' for n in sorted(counts)])}" for arm, counts in arms.items()
            )
            said = f"the arms of {runs.phase}, {size} train different numbers of parameters: {shown}"
            yield IntegrityFinding(IntegrityKind.DIFFERENT_PARAMETERS, said, is_fault=False, data={"size": size})
