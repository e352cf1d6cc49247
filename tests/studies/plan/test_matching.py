"""Steps and settings that make an arm cost what the baseline costs, and arms for which there are none."""

from __future__ import annotations

import pytest

from attnlab.errors import StudyError
from attnlab.studies.plan.matching import Matching, RunCount, check_equal, scale_steps

from ..samples import study

BASELINE = RunCount((100, 50), (10.0, 20.0), 1000, 64, (0.1, 0.2))
PLACE = ("recall", "tiny", "bypass")


def test_each_segment_is_scaled_by_its_own_cost() -> None:
    assert scale_steps((100, 50), (10.0, 20.0), (20.0, 10.0)) == (50, 100)
    assert scale_steps((1,), (1.0,), (1000.0,)) == (1,)


def test_totals_are_of_the_whole_run_or_of_the_model() -> None:
    assert BASELINE.total("operations") == 2000
    assert BASELINE.total("seconds") == pytest.approx(20)
    assert (BASELINE.total("parameters"), BASELINE.total("state"), BASELINE.total("steps")) == (1000, 64, 150)
    assert [BASELINE.operations_until(step) for step in (0, 50.5, 100, 110, 999)] == [0, 505, 1000, 1200, 2000]


def test_an_arm_that_cannot_be_made_equal_is_refused_in_one_sentence() -> None:
    few = RunCount((9,), (11.0,), 1003, 64)
    with pytest.raises(
        StudyError, match=r'linear: 99 operations .* "operations" allows 1 %; give the phase more steps'
    ):
        check_equal("operations", RunCount((10,), (10.0,), 1000, 64), few, "linear")
    check_equal("parameters", BASELINE, few, "linear")
    with pytest.raises(StudyError, match="a state of 32 numbers is the closest to the baseline's a state of 64"):
        check_equal("state", BASELINE, RunCount((9,), (11.0,), 1003, 32), "linear")


def test_steps_and_config_reach_the_runs() -> None:
    design = study().design
    phase, arm = design.phases[0], design.arms["bypass"]
    by_steps = Matching("operations", {PLACE: RunCount((7,), (1.0,), 1, 1)})
    assert by_steps.apply(phase, arm, PLACE)[0].segments[0].steps == 7
    assert by_steps.apply(phase, arm, ("recall", "tiny", "dot")) == (phase, arm)
    by_width = Matching("parameters", {PLACE: RunCount((7,), (1.0,), 1, 1, config={"n_inner": 60})})
    same, changed = by_width.apply(phase, arm, PLACE)
    assert same == phase
    assert changed.config == {"n_inner": 60}


def test_notes_say_what_both_arms_have() -> None:
    arm = RunCount((50, 100), (20.0, 10.0), 1002, 64, (0.2, 0.1), {"n_inner": 60})
    counts = {PLACE: arm, ("recall", "tiny", "dot"): BASELINE}

    def describe(match: str) -> str:
        return "; ".join(Matching(match, counts, "a processor").describe(PLACE, "dot"))  # type: ignore[arg-type]

    assert "bypass trains 150 steps (2000 operations) and dot 150 (2000 operations)" in describe("operations")
    assert "measured before training on a processor" in describe("seconds")
    assert "bypass with n_inner = 60 has 1,002 parameters and dot 1,000 parameters" in describe("parameters")
    assert "another shape" in describe("parameters")
    assert describe("steps") == ""
