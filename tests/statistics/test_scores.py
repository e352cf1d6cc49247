"""What comes in: any usual form of scores is read, and whatever is none is one clear error."""

from typing import Any

import numpy as np
import pytest

from attnlab.errors import AttnlabError, StatisticsError
from attnlab.statistics import compare
from attnlab.statistics.scores import read_arm, read_arms

GOOD = [70.0, 71.0, 69.5, 70.4, 71.2]


@pytest.mark.parametrize(
    "scores",
    [
        GOOD,
        tuple(GOOD),
        np.array(GOOD),
        np.array(GOOD, dtype=np.float32),
        dict(enumerate(GOOD)),
        [[one] for one in GOOD],
    ],
)
def test_scores_come_in_any_usual_form(scores: Any) -> None:
    arm = read_arm("baseline", scores)
    assert arm.values.dtype == np.float64
    assert arm.values.shape == (5,)
    assert arm.per_seed == pytest.approx(GOOD, rel=1e-6)


def test_truth_values_of_examples_are_scores() -> None:
    arm = read_arm("baseline", [[True, False, True, True], [False, False, True, True]])
    assert arm.per_seed.tolist() == [0.75, 0.5]
    assert arm.num_examples == 4


def test_named_seeds_are_paired_by_name() -> None:
    baseline, variant = read_arms({9: 1.0, 8: 2.0, 5: 3.0}, {5: 30.0, 9: 10.0, 8: 20.0}, paired=True)
    assert baseline.seeds == variant.seeds == ("9", "8", "5")
    assert variant.values.tolist() == [10.0, 20.0, 30.0]


def test_a_failed_run_is_counted_and_its_pair_left_alone() -> None:
    baseline, variant = read_arms([1.0, 2.0, 3.0], [10.0, None, 30.0], paired=True)
    assert (baseline.seeds, variant.failed) == (("1", "3"), ("2",))
    assert baseline.alone == (("2", 2.0),)
    assert (baseline.num_runs, variant.num_runs) == (3, 3)


def test_a_failed_run_may_be_a_row() -> None:
    arm = read_arm("variant", [[1.0, 2.0], None, [3.0, 4.0]])
    assert (arm.failed, arm.values.shape) == (("2",), (2, 2))


WRONG: list[tuple[Any, Any, str]] = [
    (
        GOOD,
        [*GOOD[:4], float("nan")],
        "score of seed '5' is nan. A run that failed or diverged has no score: give None",
    ),
    (GOOD, [*GOOD[:4], float("inf")], "score of seed '5' is inf"),
    (GOOD, GOOD[:4], "5 came for the baseline and 4 for the variant, and seed '5' is in one of them alone"),
    ({1: 1.0, 2: 2.0}, {1: 1.0, 3: 2.0}, "seed '2' is in one of them alone"),
    ([], [], r"shape \[0\]"),
    (GOOD, ["70", "71", "69", "70", "71"], "must be numbers, and text came"),
    (GOOD, "70 71", "must be numbers, and text came"),
    (GOOD, [1 + 2j] * 5, "must be numbers, and complex numbers came"),
    (GOOD, [object()] * 5, "must be numbers, and something else came"),
    (GOOD, [[1.0, 2.0], [1.0]] * 3, "every seed needs the same number of examples"),
    (GOOD, np.ones((5, 2, 2)), r"shape \[5, 2, 2\]"),
    (GOOD, 70.0, r"shape \[\]"),
    (GOOD, None, "must be numbers"),
    (GOOD, [None] * 5, "every run of the variant failed"),
    ([1.0, None], [None, 1.0], "no seed has a score in both arms"),
    (np.ones((5, 3)), GOOD, "both must be"),
    (np.ones((5, 3)), np.ones((5, 4)), "asked the same examples"),
    (np.ones(10_570), np.zeros(10_570), "10570 seeds, more than 1000. If these are scores of examples"),
    (GOOD, [1e200] * 5, "cannot be squared"),
    ({1: 1.0, "1": 2.0}, {1: 1.0, "1": 2.0}, "two seeds of the baseline have the same name"),
]


@pytest.mark.parametrize(("baseline", "variant", "message"), WRONG)
def test_what_is_no_score_is_one_clear_error(baseline: Any, variant: Any, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        compare(baseline, variant)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smallest": 0.0}, "smallest=0.0: the smallest difference worth having must be a number above 0"),
        ({"smallest": -1.0}, "smallest=-1.0"),
        ({"smallest": float("nan")}, "smallest=nan"),
        ({"smallest": "1"}, "smallest='1'"),
        ({"alpha": 0.0}, "alpha=0.0 must be a number between 0 and 0.5"),
        ({"alpha": 5}, "alpha=5"),
        ({"looks": "always"}, "looks='always'"),
        ({"looks": (4, 8)}, "5 seeds are none of the declared looks"),
    ],
)
def test_wrong_settings_are_one_clear_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AttnlabError, match=message):
        compare(GOOD, GOOD, **settings)


def test_unpaired_arms_may_have_other_sizes() -> None:
    assert compare(GOOD, [*GOOD, 72.0], paired=False).known.variant.n == 6
