"""The code of docs/statistics.md runs, and its tables name every verdict, every case and every fault."""

from pathlib import Path

import pytest

from attnlab.statistics.selftest import Case, refused, stabilities, verdicts
from attnlab.studies.integrity import budgets, lone_seed, possibility, predictions, repetition, summaries
from tests.test_pages import blocks

PAGE = (Path(__file__).parent.parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_the_pages_code_runs() -> None:
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "the block of docs/statistics.md", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("case", [*verdicts(), *stabilities(), *refused()], ids=lambda case: case.what)
def test_the_page_shows_every_case(case: Case) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"{case.what} ")]
    assert any(f" {case.how} " in row and f" {case.seeds} " in row for row in rows)


def test_the_page_names_every_fault() -> None:
    names = [module.CHECK for module in (budgets, lone_seed, possibility, predictions, repetition, summaries)]
    assert [name for name in names if f"| {name} |" not in PAGE] == []


def test_the_page_names_every_verdict() -> None:
    words = ("BETTER", "WORSE", "BETTER, BELOW YOUR THRESHOLD", "NO MEANINGFUL DIFFERENCE", "TOO FEW SEEDS (n < 5)",
             "INCONCLUSIVE (about N more seeds)", "NOT COMPARABLE (why)", "DEGENERATE", "LESS STABLE", "MORE STABLE",
             "STABILITY UNKNOWN")  # fmt: skip
    assert [word for word in words if f"`{word}" not in PAGE] == []
