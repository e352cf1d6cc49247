"""A budget that is only a smoke test says so, and names the budget that answers the question."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.reports import write_report
from attnlab.statistics.verdict import MIN_SEEDS
from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import SMALLEST, find_answering_budget, list_recipes
from attnlab.studies.file.smoke_test import describe_smoke_test
from attnlab.studies.plan.learning_budget import list_budget_warnings
from attnlab.studies.study import Study

from ..folders import BETTER, DOT, two_arms, write_folder
from ..samples import STUDY
from .refusals import refusal

SMOKE = "[budgets.smoke]"


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_names_a_budget_that_can_give_verdicts(name: str) -> None:
    file = list_recipes()[name]
    answering = read_design(file, find_answering_budget(file))
    assert answering.answered_by is None
    assert len(answering.seeds) >= MIN_SEEDS


@pytest.mark.parametrize("name", list_recipes())
def test_only_a_smoke_test_is_too_short_to_learn(name: str) -> None:
    study = Study.load(list_recipes()[name], SMALLEST)
    has_too_little = len(study.design.seeds) < MIN_SEEDS or bool(list_budget_warnings(study.plan()))
    assert has_too_little == (study.design.answered_by is not None)


@pytest.mark.parametrize("name", ["minigpt-masks", "minigpt-scores", "minigpt-sharing"])
def test_an_assignment_is_answered_in_minutes_without_a_download(name: str) -> None:
    study = Study.load(list_recipes()[name], "minutes")
    assert find_answering_budget(list_recipes()[name]) == "minutes"
    assert list_budget_warnings(study.plan()) == []


def test_a_smoke_test_names_the_budget_that_answers(file: Path) -> None:
    file.write_text(STUDY.replace(SMOKE, f'{SMOKE}\nanswered_by = "paper"'), encoding="utf-8")
    said = describe_smoke_test(read_design(file, "smoke"))
    assert said.startswith("this is only a smoke test")
    assert "run it with --budget paper" in said
    assert describe_smoke_test(read_design(file, "paper")) == describe_smoke_test(read_design(file)) == ""
    file.write_text(STUDY.replace(SMOKE, f'{SMOKE}\nanswered_by = "no budget"'), encoding="utf-8")
    assert "run it without --budget" in describe_smoke_test(read_design(file, "smoke"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (SMOKE, f'{SMOKE}\nanswered_by = "papr"', "no budget is called 'papr', did you mean 'paper'? Name one of: "),
        (SMOKE, f'{SMOKE}\nanswered_by = "smoke"', "'smoke' is a smoke test. Name one of: no budget, paper"),
        ("seeds = [1, 2]", 'seeds = [1, 2]\nanswered_by = "paper"', "'answered_by' belongs into a budget"),
        (SMOKE, f"{SMOKE}\nanswered_by = 3", "'answered_by': "),
    ],
)
def test_a_smoke_test_that_nothing_answers_is_refused(file: Path, old: str, new: str, words: str) -> None:
    assert words in refusal(file, STUDY.replace(old, new, 1))


def test_the_page_and_the_comparison_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"dot": DOT, "better": BETTER}
    folder = write_folder(tmp_path / "smoke", given, two_arms(answered_by="laptop"))
    assert main(["compare", str(folder)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("run it with --budget laptop, in another folder")
    page = write_report(folder).read_text(encoding="utf-8")
    assert '<p id="smoke-test"><strong>This is only a smoke test' in page
    whole = write_report(write_folder(tmp_path / "whole", given)).read_text(encoding="utf-8")
    assert "smoke test" not in whole
