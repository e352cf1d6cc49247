"""A smoke test: a budget that runs every part of a study, and is too short to answer the study's question."""

from collections.abc import Iterator, Mapping
from typing import Any

from .addresses import Misfit, report_unknown
from .design import Design

ANSWERED_BY = "answered_by"
"""The setting by which a budget says that it is a smoke test, and which budget answers the question."""
NO_BUDGET = "no budget"
"""Its value in a study file whose own settings answer the question."""


def check_smoke_tests(budgets: Mapping[str, Mapping[str, Any]]) -> Iterator[Misfit]:
    """Find smoke tests that name no budget which answers the question."""
    smoke_tests = [name for name, budget in budgets.items() if budget.get(ANSWERED_BY) is not None]
    answering = [NO_BUDGET, *(name for name in budgets if name not in smoke_tests)]
    for name in smoke_tests:
        wanted = budgets[name][ANSWERED_BY]
        if isinstance(wanted, str) and wanted not in answering:
            is_smoke_test = wanted in smoke_tests
            why = f"'{wanted}' is a smoke test." if is_smoke_test else report_unknown("no budget", wanted, answering)
            yield ("budgets", name, ANSWERED_BY), f"{why} Name one of: {', '.join(answering)}"


def describe_smoke_test(design: Design) -> str:
    """Say that a study is only a smoke test, and what answers its question; empty if it is no smoke test."""
    if design.answered_by is None:
        return ""
    how = "without --budget" if design.answered_by == NO_BUDGET else f"with --budget {design.answered_by}"
    return (
        "this is only a smoke test: it runs every part of the study, and is too short to answer its question; for an "
        f"answer run it {how}, in another folder"
    )
