"""A study as data: what it accepts and refuses without a file."""

from __future__ import annotations

import pytest

from attnlab.errors import StudyError
from attnlab.studies.file.design import IS_RECORDED, Design
from attnlab.studies.study import Study

from ..samples import content


def test_a_study_of_plain_data_is_read_alike() -> None:
    assert Study.of(content()).design.seeds == [1, 2]
    with pytest.raises(StudyError, match="the study: 'name' is missing"):
        Study.of({})
    with pytest.raises(ValueError, match="no arm is called 'nobody'"):
        Design.model_validate({**content(), "baseline": "nobody"})


def test_an_arm_may_have_another_line_in_another_size() -> None:
    plain = content(arms__wide={"mechanism": "cosine | relu", "by_size": {"large": "cosine | gelu"}})
    large = {**plain["sizes"]["tiny"], "config": {**plain["sizes"]["tiny"]["config"], "n_layer": 2}}
    runs = Study.of({**plain, "sizes": {**plain["sizes"], "large": large}}).plan()
    lines = {run.size: run.run.start.mechanism for run in runs if run.arm == "wide"}
    assert lines == {"tiny": "cosine | relu", "large": "cosine | gelu"}
    with pytest.raises(StudyError, match=r"no size is called 'larg', did you mean 'large'"):
        Study.of({
            **plain, "sizes": {"large": large},
            "arms": {**plain["arms"], "wide": {"mechanism": "cosine", "by_size": {"larg": "angle"}}},
        })  # fmt: skip


def test_a_recorded_design_may_have_stages_that_are_not_registered() -> None:
    plain = content(arms__own="dot | not_registered")
    with pytest.raises(ValueError, match="unknown stage 'not_registered'"):
        Design.model_validate(plain)
    recorded = Design.model_validate(plain, context={IS_RECORDED: True})
    assert recorded.arms["own"].mechanism == "dot | not_registered"


def test_an_arm_changes_the_config_of_the_model_it_starts_from() -> None:
    design = Design.model_validate(content(arms__deep={"mechanism": "dot", "set": {"config.n_layer": 5, "clip": 2.0}}))
    assert design.arms["deep"].config == {"n_layer": 5}
    start = design.sizes["tiny"].start(design.arms["deep"].config, "dot | softmax")
    assert (start.config["n_layer"], start.config["n_embd"], start.mechanism) == (5, 16, "dot | softmax")


@pytest.mark.parametrize("looks", [[], [1], [5, 5], [5, 2.5], "closed", 5])
def test_looks_are_increasing_numbers_of_seeds(looks: object) -> None:
    with pytest.raises(ValueError, match="looks are increasing numbers of seeds"):
        Design.model_validate(content(looks=looks))
