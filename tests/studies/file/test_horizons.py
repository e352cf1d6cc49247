"""Horizons become phases with schedules of their own; settings keep the names of the file."""

from __future__ import annotations

import json

import pytest

from attnlab.studies.file.design import IS_RECORDED, Design
from attnlab.studies.file.horizons import find_phase, list_compared, scale_segments
from attnlab.studies.file.overrides import apply_settings, select_grid
from attnlab.studies.study import Study
from attnlab.training.spec import Segment

from ..joint import horizons
from ..searches import searched


def test_a_compared_phase_is_trained_for_each_horizon_and_the_longest_has_the_verdict() -> None:
    plain = horizons()
    later = {**plain["phases"][0], "name": "later", "after": "recall", "smallest": None}
    design = Study.of({**plain, "phases": [*plain["phases"], {k: v for k, v in later.items() if v is not None}]}).design
    assert [(phase.name, phase.smallest, phase.after) for phase in design.phases] == [
        ("recall@2", None, None), ("recall@4", None, None), ("recall@8", 0.02, None), ("later", None, "recall@8"),
    ]  # fmt: skip
    assert [phase.segments[0].steps for phase in design.phases] == [2, 4, 8, 4]
    assert list_compared(design) == ["recall"]
    assert find_phase(design, "recall").name == "recall@8"


def test_the_design_of_a_ledger_is_read_as_it_is() -> None:
    design = Study.of(horizons()).design
    recorded = json.loads(json.dumps(design.model_dump(mode="json")))
    assert Design.model_validate(recorded, strict=False, context={IS_RECORDED: True}) == design


def test_the_same_length_is_the_same_run() -> None:
    plain = horizons(horizons=[2, 4])
    alone = {run.id for run in Study.of({**plain, "horizons": None}).plan()}
    assert alone < {run.id for run in Study.of(plain).plan()}


@pytest.mark.parametrize(("steps", "expected"), [(10, [3, 7]), (100, [30, 70]), (2, [1, 1]), (3, [1, 2])])
def test_segments_keep_their_proportions_and_the_total_is_the_horizon(steps: int, expected: list[int]) -> None:
    segments = [Segment(steps=300, batch=4), Segment(steps=700, batch=8)]
    scaled = scale_segments(segments, steps)
    assert [segment.steps for segment in scaled] == expected
    assert [segment.batch for segment in scaled] == [4, 8]


def test_one_segment_may_be_given_in_epochs() -> None:
    (segment,) = scale_segments([Segment(epochs=2.0)], 50)
    assert (segment.steps, segment.epochs) == (50, None)


def test_settings_and_searches_reach_every_horizon() -> None:
    arms = {"dot": "dot | softmax", "clipped": {"mechanism": "cosine", "set": {"phases.recall.clip": 0.5}}}
    design = Study.of(horizons(arms=arms)).design
    assert [apply_settings(phase, design.arms["clipped"]).clip for phase in design.phases] == [0.5] * 3
    design = Study.of({**searched(), "horizons": [2, 4]}).design
    assert [list(select_grid(design, phase, design.arms["dot"])) for phase in design.phases] == [["optimizer.lr"]] * 2
