"""The code of docs/statistics.md runs, and its tables show every case and name every fault."""

from pathlib import Path

import pytest

from attnlab.statistics.cases import list_cases, list_unsound_methods
from attnlab.statistics.simulation import Case
from attnlab.studies.integrity import IntegrityKind
from tests.test_pages import blocks

PAGE = (Path(__file__).parent.parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_pages_code_runs() -> None:
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "the block of docs/statistics.md", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("case", [*list_cases(), *list_unsound_methods()], ids=lambda case: case.what)
def test_the_page_shows_every_case(case: Case) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"{case.what} ")]
    assert any(f" {case.seeds} " in row for row in rows)
    assert not any("TOO OFTEN" in row for row in rows)


def test_the_page_names_every_fault() -> None:
    kinds = (
        IntegrityKind.DIFFERENT_BUDGETS, IntegrityKind.SPREAD_OF_ONE_SEED, IntegrityKind.IMPOSSIBLE_VALUES,
        IntegrityKind.ONE_ANSWER, IntegrityKind.REPEATED_VALUES, IntegrityKind.SUMMARY_DIFFERS,
    )  # fmt: skip
    assert [kind for kind in kinds if f"| {kind.value} |" not in PAGE] == []
