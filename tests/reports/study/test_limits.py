"""The limits of a study follow from its design and its runs."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.reports.study.limits import list_limits
from attnlab.reports.study.page import render_page
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.study import Study

from ...studies.samples import content
from ...studies.searches import ARMS, searched
from .made import BASE, HIGH, HOSTILE, Made
from .reading import contents


def test_limits_speak_of_the_design(folder: Path) -> None:
    said = " ".join(contents(folder).limits)
    for words in ("5 seeds per arm", "One model size, tiny", "one dataset, recall", "worse 1 of 5", "correlation"):
        assert words in said


TUNED = "Only optimizer.lr was tuned for each arm"
SAME = "All arms have the same settings: none was tuned separately"


@pytest.mark.parametrize(
    ("plain", "limit"),
    [
        (searched(), TUNED),
        (searched(repeat="once"), TUNED),
        ({**content(), "arms": dict(ARMS)}, SAME),
        ({**content(), "arms": {n: {"mechanism": m, "set": {"clip": 2.0}} for n, m in ARMS.items()}}, SAME),
        ({**content(), "arms": {n: {"mechanism": m, "set": {"clip": len(n)}} for n, m in ARMS.items()}}, None),
    ],
)
def test_what_was_tuned_for_each_arm_is_said_as_it_was(
    plain: dict[str, Any], limit: str | None, tmp_path: Path
) -> None:
    design = Study.of(plain).design
    ledger: Any = None
    limits = list_limits(Record(tmp_path, ledger, design, (), {}, {}, (), {}), [])
    assert [said for said in (TUNED, SAME) if any(said in each for each in limits)] == [limit] * (limit is not None)


def test_the_study_file_is_shown_and_its_budget_is_minded(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE).give("better", HIGH)
    (tmp_path / "study.toml").write_text(f"# {HOSTILE}\n[budgets.paper]\nseeds = [1]\n", encoding="utf-8")
    found = contents(made.done())
    assert found.origin.study_text.startswith(f"# {HOSTILE}")
    assert any("not with 'paper'" in limit for limit in found.limits)
    assert "<script>alert" not in render_page(found)


def test_times_of_a_busy_machine_are_said_to_tell_little(tmp_path: Path) -> None:
    for seconds, is_busy in (([2.0, 2.2, 2.0, 2.4, 2.1], False), ([2.0, 2.2, 2.0, 5.0, 2.1], True)):
        made = Made(tmp_path / str(is_busy))
        made.give("dot", BASE).give("better", HIGH, costs=[{"seconds": each} for each in seconds])
        found = contents(made.done())
        said = [limit for limit in found.limits if "times in speed, as on a busy machine" in limit]
        assert len(said) == is_busy
        captions = [figure.caption for figure in found.figures if figure.title.startswith("Quality and training time")]
        assert ["Seeds of better differ 2.5 times in speed" in caption for caption in captions] == [is_busy]
