"""Mistakes in what a study asks about sizes, horizons and tasks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.study import Study

from ..joint import horizons, three_sizes, two_tasks

SEGMENTS = [{"epochs": 1.0, "batch": 8}, {"steps": 5, "batch": 8}]


@pytest.mark.parametrize(
    ("plain", "sentence"),
    [
        (three_sizes(trend={"phases": ["recal"]}), "no phase is called 'recal', did you mean 'recall'?"),
        (three_sizes(trend={"over": "steps"}), "'trend.over': should be 'parameters', not 'steps'"),
        (three_sizes(trend={"smallest": 0.0}), "'trend.smallest'"),
        (horizons(horizons=None, trend={}), "a trend needs 3 sizes or more, and the study has 1 size"),
        (two_tasks(conclusion={"phases": ["recall"]}), "at least 2 items"),
        (two_tasks(conclusion={"phases": ["recall", "recall"]}), "phase 'recall' is listed twice"),
        (two_tasks(conclusion={"phases": ["recall", "squad"]}), "no phase is called 'squad'"),
        (two_tasks(conclusion={}), "'conclusion.phases' is missing"),
        (horizons(horizons=[4, 2]), "horizons are increasing numbers of steps"),
        (horizons(horizons=[4]), "at least 2 items"),
        (horizons(horizons=[0, 4]), "greater than or equal to 1"),
        (horizons(horizons=list(range(1, 12))), "at most 10 items"),
    ],
)
def test_a_wrong_question_is_refused(plain: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StudyError, match=re.escape(sentence)):
        Study.of(plain)


def test_a_phase_that_is_not_compared_answers_nothing() -> None:
    plain = two_tasks()
    del plain["phases"][1]["smallest"]
    with pytest.raises(StudyError, match="phase 'again' is not compared; give it smallest"):
        Study.of(plain)
    plain = horizons()
    del plain["phases"][0]["smallest"]
    with pytest.raises(StudyError, match="no phase is compared, so there is nothing to train for several horizons"):
        Study.of(plain)


def test_only_the_horizons_set_the_steps() -> None:
    plain = horizons(arms={"dot": "dot", "long": {"mechanism": "cosine", "set": {"segments.0.steps": 9}}})
    with pytest.raises(StudyError, match="the horizons set the steps of every compared phase"):
        Study.of(plain)
    plain = horizons()
    plain["phases"][0]["segments"] = SEGMENTS
    with pytest.raises(StudyError, match="give steps instead of epochs"):
        Study.of(plain)
    plain["phases"][0]["segments"] = [{"steps": 5, "batch": 8}] * 3
    with pytest.raises(StudyError, match="3 segments do not fit into 2 steps"):
        Study.of(plain)


def test_a_horizon_is_no_part_of_a_name() -> None:
    plain = horizons(horizons=None)
    plain["phases"][0]["name"] = "recall@3"
    with pytest.raises(StudyError, match="'@' in the name of a phase is for a horizon"):
        Study.of(plain)
