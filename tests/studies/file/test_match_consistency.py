"""Mistakes in match, aa, target and figure_at, each in one sentence; and the arm that aa adds."""

from __future__ import annotations

from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.study import Study

from ..samples import content


def make(change: dict[str, Any], **paths: Any) -> Study:
    return Study.of({**content(**paths), **change})


@pytest.mark.parametrize(
    ("change", "paths", "sentence"),
    [
        ({"match": "flops"}, {}, "'steps', 'operations', 'seconds', 'parameters' or 'state'"),
        ({"aa": True, "baseline": "aa"}, {"arms__aa": "dot | softmax"}, "the baseline needs another name"),
        ({"aa": True}, {"arms__aa": "cosine | softmax"}, "rename this one"),
        ({"match": "operations"}, {"arms__slow__set": {"segments.0.steps": 9}}, "chooses the steps of every arm"),
        ({}, {"phases__recall__figure_at": "best"}, "give evaluate_every"),
        ({}, {"phases__recall__figure_at": "first"}, "'last' or 'best'"),
        ({}, {"phases__recall__target": 0.5, "phases__recall__smallest": None}, "also needs smallest"),
        ({}, {"phases__recall__target": "low"}, "valid number"),
        (
            {"match": "parameters", "sizes": {"tiny": {"checkpoint": "gpt2"}}}, {},
            "which a checkpoint has fixed; give an architecture",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(change: dict[str, Any], paths: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence) as error:
        make(change, **paths)
    assert len(str(error.value).splitlines()) == 1


def test_the_best_checkpoint_needs_data_of_its_own() -> None:
    study = make({}, phases__recall__figure_at="best", phases__recall__evaluate_every=2)
    with pytest.raises(StudyError, match='figure_at = "best" needs data that neither training nor the verdict uses'):
        study.plan()


def test_aa_is_the_baseline_under_other_seeds() -> None:
    study = make({"aa": True})
    runs = {(run.arm, run.seed): run for run in study.plan()}
    ours, theirs = runs["dot", 1], runs["aa", 1]
    assert ours.run.start == theirs.run.start
    assert (ours.run.seed, theirs.run.seed in (1, 2)) == (1, False)
    assert ours.id != theirs.id
    assert study.design.tested_arms == ["bypass", "slow"]
    again = type(study.design).model_validate(study.design.model_dump(), strict=False)
    assert again == study.design
