"""What comes in: any usual form of scores is read, and whatever is none is one clear error."""

from typing import Any

import numpy as np
import pytest

from attnlab.errors import StatisticsError
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
        "score of seed '5' is nan. Give None for a run that failed or diverged",
    ),
    (GOOD, [*GOOD[:4], float("inf")], "score of seed '5' is inf"),
    (GOOD, GOOD[:4], "the baseline has 5 and the variant 4, and seed '5' is only in one of them"),
    ({1: 1.0, 2: 2.0}, {1: 1.0, 3: 2.0}, "seed '2' is only in one of them"),
    ([], [], r"shape \[0\]"),
    (GOOD, ["70", "71", "69", "70", "71"], "must be numbers, not text"),
    (GOOD, "70 71", "must be numbers, not text"),
    (GOOD, [1 + 2j] * 5, "must be numbers, not complex numbers"),
    (GOOD, [object()] * 5, "must be numbers, not other objects"),
    (GOOD, [[1.0, 2.0], [1.0]] * 3, "every seed needs the same number of examples"),
    (GOOD, np.ones((5, 2, 2)), r"shape \[5, 2, 2\]"),
    (GOOD, 70.0, r"shape \[\]"),
    (GOOD, None, "must be numbers"),
    (GOOD, [None] * 5, "every run of the variant failed"),
    ([1.0, None], [None, 1.0], "no seed has a score in both arms"),
    (np.ones((5, 3)), GOOD, "both must be"),
    (np.ones((5, 3)), np.ones((5, 4)), "evaluated on the same examples"),
    (np.ones(10_570), np.zeros(10_570), "10570 seeds, more than 1000. If these are scores of examples"),
    (GOOD, [1e200] * 5, "beyond 1e"),
    ({1: 1.0, "1": 2.0}, {1: 1.0, "1": 2.0}, "two seeds of the baseline have the same name"),
]


@pytest.mark.parametrize(("baseline", "variant", "message"), WRONG)
def test_what_is_no_score_is_one_clear_error(baseline: Any, variant: Any, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        compare(baseline, variant)


def test_unpaired_arms_may_have_other_sizes() -> None:
    assert compare(GOOD, [*GOOD, 72.0], paired=False).data.variant.n == 6
