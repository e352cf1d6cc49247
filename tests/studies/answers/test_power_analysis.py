"""Seeds that a study needs, from a pilot or from a given spread."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.statistics import Noise, look_limits, paired_t, seeds_needed
from attnlab.statistics.planning import at_upper_bound
from attnlab.studies.answers.power_analysis import Aim, Prospect, estimate_seed_time, find_level, plan_seeds
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.file.design import Design
from attnlab.studies.study import Study

from ..folders import BETTER, DOT, two_arms, write_folder


def design(**changes: Any) -> Design:
    return Study.of(two_arms(**changes)).design


def plan(folder: Path, study: Design | None = None) -> Prospect:
    with open_record(folder) as record:
        (prospect,) = plan_seeds(study or design(), record, Aim())
    return prospect


def test_the_level_is_shared_by_comparisons_and_looks() -> None:
    three = {"dot": "dot | softmax", "better": "cosine | softmax", "third": "dot | sigmoid"}
    assert find_level(design(), 0.05) == 0.05
    assert find_level(design(arms=three), 0.05) == 0.025
    assert find_level(design(looks=[5, 10]), 0.05) == look_limits([5, 10])[10]


def test_a_given_spread_is_used_as_it_is() -> None:
    (prospect,) = plan_seeds(design(), 0.05, Aim(powers=(0.8,)))
    assert (prospect.num_pilot, prospect.sd) == (0, 0.05)
    assert prospect.sd_bound == pytest.approx(0.05)
    assert prospect.seeds == {0.8: seeds_needed(Noise(0.05**2, math.inf), 0.02, 0.8)}
    assert prospect.record()["seeds"] == {"0.8": prospect.seeds[0.8]}


def test_a_pilot_gives_the_upper_bound_of_its_spread(tmp_path: Path) -> None:
    prospect = plan(write_folder(tmp_path / "pilot", {"dot": DOT[:3], "better": BETTER[:3]}))
    differences = [after - before for before, after in zip(DOT[:3], BETTER[:3], strict=True)]
    noise = paired_t(np.array(differences)).noise
    assert (prospect.num_pilot, prospect.figure) == (3, "accuracy")
    assert prospect.sd == pytest.approx(math.sqrt(noise.per_seed))
    assert prospect.sd_bound == pytest.approx(math.sqrt(at_upper_bound(noise).per_seed))


@pytest.mark.parametrize(
    ("given", "changes", "obstacle"),
    [
        ({"dot": DOT[:1], "better": BETTER[:1]}, {}, "1 seed has ended in both arms; a spread needs at least 2"),
        ({"dot": (0.5, 0.5), "better": (0.75, 0.75)}, {}, "every pair of seeds differs by the same"),
        ({"dot": DOT[:3]}, {"arms": {"dot": "dot | softmax", "other": "dot | relu"}}, "the pilot has no arm 'other'"),
        (
            {"dot": DOT[:3], "better": BETTER[:3]},
            {"arms": {"dot": "dot | softmax", "better": "dot | relu"}},
            "'better' is cosine | softmax in the pilot",
        ),
    ],
)
def test_a_pilot_that_does_not_fit_is_explained(
    given: dict[str, Any], changes: dict[str, Any], obstacle: str, tmp_path: Path
) -> None:
    prospect = plan(write_folder(tmp_path / "pilot", given), design(**changes))
    assert prospect.obstacle.startswith(obstacle)
    assert prospect.seeds == {}


def test_a_study_that_is_decided_needs_no_more_seeds(tmp_path: Path) -> None:
    with open_record(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})) as record:
        (prospect,) = plan_seeds(record.design, record, Aim())
    assert prospect.obstacle == "decided: BETTER BY AT LEAST 0.02 AT SHARED SETTINGS; no more seeds are needed"


def test_the_time_of_a_seed_is_that_of_one_run_of_each_arm(tmp_path: Path) -> None:
    with open_record(write_folder(tmp_path / "whole", {"dot": DOT, "better": BETTER}, seconds=60.0)) as record:
        assert estimate_seed_time(record) == (2, 120.0)
    with open_record(write_folder(tmp_path / "half", {"dot": DOT})) as record:
        assert estimate_seed_time(record) is None
