"""What a search cannot try, and arms that would get more trials than others."""

from __future__ import annotations

from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.study import Study

from ..searches import RATES, search_study, searched


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"over": {"optimizer.rate": RATES}}, "optimizer.rate"),
        ({"over": {"config.n_layer": [1, 2]}}, "must share 'config.n_layer'"),
        ({"over": {"segments.0.batch": [1, 2]}}, "must share 'segments.0.batch'"),
        ({"over": {"phases.other.clip": [1.0, 2.0]}}, "no phase is called 'other'"),
        ({"over": {"optimizer": [1]}}, "a search cannot try 'optimizer'"),
        ({"over": {"seed": [1]}}, "a search cannot try 'seed'"),
        ({"over": {"optimizer.lr": [1e-3, 1e-3]}}, "listed twice"),
        ({"over": {"optimizer.lr": [1e-3, -1.0]}}, "cannot have this value of 'optimizer.lr'"),
        ({"over": {}}, "search.over"),
        ({"trials": 3}, "3 trials, but the grid has 2 points"),
        ({"split": "dev"}, "search.split"),
        ({"extend": True, "halve": True}, "only a grid that is tried as a whole can go on"),
        ({"extend": True, "over": {"optimizer.name": ["adam", "sgd"]}}, "at least 2 numbers above 0"),
    ],
)
def test_a_wrong_search_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence.replace("(", r"\(").replace(".", r"\.")):
        search_study(**changes)


def test_every_arm_has_as_many_trials_and_none_sets_what_is_searched() -> None:
    plain = searched()
    own = {"mechanism": "cosine | softmax", "over": {"optimizer.lr": [1e-3, 1e-2, 1e-1]}}
    with pytest.raises(StudyError, match="3 values, and the search has 2"):
        Study.of({**plain, "arms": {**plain["arms"], "cosine": own}})
    own = {"mechanism": "cosine | softmax", "over": {"clip": [1.0, 2.0]}}
    with pytest.raises(StudyError, match="no setting of the search is called 'clip'"):
        Study.of({**plain, "arms": {**plain["arms"], "cosine": own}})
    fixed = {"mechanism": "cosine | softmax", "set": {"optimizer.lr": 1e-3}}
    with pytest.raises(StudyError, match=r"the search chooses 'optimizer\.lr'; give the arm values of its own"):
        Study.of({**plain, "arms": {**plain["arms"], "cosine": fixed}})
