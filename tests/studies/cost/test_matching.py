"""Arms of a study that are built, counted and made equal before anything is trained."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.cost import matching
from attnlab.studies.cost.matching import match_arms
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.plan.matching import Matching
from attnlab.studies.run.matching_record import record_matching
from attnlab.studies.study import Study

from ..samples import content

ARMS = {"dot": "dot | softmax", "linear": "cosine | identity(divide=n)", "additive": "additive | softmax"}
PLAIN = {"attn_pdrop": 0.0}


@pytest.fixture(autouse=True)
def in_this_process(here: None) -> None:
    """Build runs in this process."""


def make_study(match: str, *arms: str, steps: int = 200, **config: Any) -> Study:
    plain = content(phases__recall__segments__0__steps=steps)
    plain["sizes"]["tiny"]["config"] |= {**PLAIN, **config}
    return Study.of({**plain, "arms": {name: ARMS[name] for name in ("dot", *arms)}, "match": match, "aa": True})


def count(study: Study, ledger: Ledger | None = None) -> Matching:
    return match_arms(study.design, study._make_planner().list_runs(None), ledger)


def test_equal_operations_are_within_one_percent_and_reach_the_plan() -> None:
    study = make_study("operations", "linear")
    found = count(study)
    dot, linear, again = (found.counts["recall", "tiny", arm] for arm in ("dot", "linear", "aa"))
    assert linear.operations != dot.operations
    assert linear.total("operations") == pytest.approx(dot.total("operations"), rel=0.01)
    assert again == dot
    steps = {run.arm: run.run.segments[0].steps for run in study.plan()}
    assert steps == {"dot": 200, "linear": linear.num_steps[0], "aa": 200}
    assert steps["linear"] != 200


def test_too_few_steps_cannot_be_made_equal() -> None:
    with pytest.raises(StudyError, match="give the phase more steps"):
        count(make_study("operations", "linear", steps=4))


def test_equal_parameters_are_within_half_a_percent_by_another_width() -> None:
    study = make_study("parameters", "additive")
    found = count(study)
    dot, additive = (found.counts["recall", "tiny", arm] for arm in ("dot", "additive"))
    assert additive.num_parameters == pytest.approx(dot.num_parameters, rel=0.005)
    assert additive.config["n_inner"] < 64
    config = {run.arm: run.run.start.config for run in study.plan()}
    assert config["additive"]["n_inner"] == additive.config["n_inner"]
    assert "n_inner" not in config["dot"]


def test_a_width_that_would_vanish_is_refused() -> None:
    with pytest.raises(
        StudyError, match=r'"parameters" allows 0.5 %; give a model whose feed-forward layers are larger'
    ):
        count(make_study("parameters", "additive", n_inner=2))


def test_states_that_differ_are_refused_and_equal_ones_are_not() -> None:
    # 24 tokens · 16 channels of keys and of values, against 2 heads of 8 × 8.
    with pytest.raises(StudyError, match="a state of 128 numbers is the closest to the baseline's a state of 768"):
        count(make_study("state", "linear"))
    found = count(make_study("state", "additive"))
    assert {one.state for one in found.counts.values()} == {768}


def test_seconds_are_measured_once_per_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "ROUND_SECONDS", 1e-9)
    study = make_study("seconds", "linear", steps=1000)
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        first = count(study, ledger)
        record_matching(ledger, first)
        matching._COUNTED.clear()
        assert count(study, ledger) == first
    dot, linear = (first.counts["recall", "tiny", arm] for arm in ("dot", "linear"))
    assert linear.total("seconds") == pytest.approx(dot.total("seconds"), rel=0.01)
    assert first.processor


def test_nothing_is_counted_at_equal_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(matching, "RunTimer")
    assert {run.run.segments[0].steps for run in make_study("steps", "linear").plan()} == {200}
