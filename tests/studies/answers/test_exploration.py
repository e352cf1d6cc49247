"""Figures that do not decide: compared as one exploratory family, without verdicts."""

from pathlib import Path

import pytest

from attnlab.statistics import adjust
from attnlab.studies.answers.exploration import explore
from attnlab.studies.answers.study_folder import open_record

from ..folders import BETTER, DOT, two_arms, write_folder


def test_every_other_figure_is_compared_at_the_level_of_its_family(tmp_path: Path) -> None:
    arms = {"dot": "dot | softmax", "better": "cosine | softmax", "same": "dot | sigmoid"}
    given = {"dot": DOT, "better": BETTER, "same": DOT[::-1]}
    with open_record(write_folder(tmp_path / "study", given, two_arms(arms=arms))) as record:
        found = explore(record)
    assert [(one.arm, one.figure, one.num_seeds) for one in found] == [("better", "loss", 5), ("same", "loss", 5)]
    adjusted = adjust({one.arm: one.p for one in found}, "exploratory")
    for one in found:
        assert (one.adjusted, one.level) == (adjusted[one.arm].adjusted, adjusted[one.arm].level)
        assert one.interval[0] < one.difference < one.interval[1]
    assert found[0].difference == pytest.approx(-0.102)
    assert found[0].record()["interval"] == list(found[0].interval)


def test_nothing_is_explored_before_every_run_has_ended(tmp_path: Path) -> None:
    with open_record(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER[:3]})) as record:
        assert explore(record) == []


def test_arms_that_are_not_comparable_are_left_out(tmp_path: Path) -> None:
    given = {"dot": DOT, "better": [None] * 5}
    with open_record(write_folder(tmp_path / "study", given)) as record:
        assert record.answers[0].verdict.startswith("NOT COMPARABLE")
        assert explore(record) == []
