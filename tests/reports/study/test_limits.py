"""The limits of a study follow from its design and its runs."""

from pathlib import Path

from attnlab.reports.study.page import render_page

from .made import BASE, HIGH, HOSTILE, Made
from .reading import contents


def test_limits_speak_of_the_design(folder: Path) -> None:
    said = " ".join(contents(folder).limits)
    for words in ("5 seeds per arm", "One model size, tiny", "one dataset, recall", "worse 1 of 5", "correlation"):
        assert words in said


def test_the_study_file_is_shown_and_its_budget_is_minded(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE).give("better", HIGH)
    (tmp_path / "study.toml").write_text(f"# {HOSTILE}\n[budgets.paper]\nseeds = [1]\n", encoding="utf-8")
    found = contents(made.done())
    assert found.origin.study_text.startswith(f"# {HOSTILE}")
    assert any("not with 'paper'" in limit for limit in found.limits)
    assert "<script>alert" not in render_page(found)
