"""The word on stability: only from eight seeds on, failures counted apart, and never dropped."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics.failures import fisher
from attnlab.statistics.scores import ArmScores, Numbers
from attnlab.statistics.stability import compare_spread, judge_stability

RNG = np.random.default_rng(0)
NARROW, WIDE = RNG.normal(70, 0.3, 10), RNG.normal(70, 6, 10)


def arm(values: Numbers, num_failed: int = 0) -> ArmScores:
    names = tuple(str(number) for number in range(len(values)))
    return ArmScores("variant", names, values, tuple(f"failed {number}" for number in range(num_failed)))


def test_unpaired_is_brown_and_forsythes() -> None:
    p, method = compare_spread(NARROW, WIDE, False)
    assert p == pytest.approx(float(stats.levene(NARROW, WIDE, center="median").pvalue))
    assert method == "Brown–Forsythe"


def test_paired_flips_the_arms_within_seeds() -> None:
    p, method = compare_spread(NARROW, WIDE, True)
    # Every deviation from the median grew but for the two seeds that are the medians' own.
    assert p < 0.05
    assert method == "permutation of deviations from the median"


@pytest.mark.parametrize("paired", [True, False])
def test_words_follow_the_direction(paired: bool) -> None:
    assert judge_stability(arm(NARROW), arm(WIDE), paired).words == "LESS STABLE"
    assert judge_stability(arm(WIDE), arm(NARROW), paired).words == "MORE STABLE"


def test_seven_seeds_are_too_few_to_tell() -> None:
    found = judge_stability(arm(NARROW[:7]), arm(100 * WIDE[:7]), True)
    assert found.words == "STABILITY UNKNOWN"
    assert found.reason == "a test of spread needs 8 seeds per arm; there are 7"
    assert math.isnan(found.spread_p)


def test_no_difference_shown_is_not_equal_stability() -> None:
    found = judge_stability(arm(NARROW), arm(NARROW[::-1]), True)
    assert found.words == "STABILITY UNKNOWN"
    assert found.reason.startswith("10 seeds do not show that one arm varies more (p = ")


def test_failures_are_fishers() -> None:
    # 0 of 10 against 6 of 10: 2·(C(10,6)·C(10,0))/C(20,6) of the tables are as extreme.
    assert fisher((0, 6), (10, 10)) == pytest.approx(2 * 210 / 38760)
    assert fisher((3, 3), (10, 10)) == 1.0


def test_failures_have_the_last_word() -> None:
    found = judge_stability(arm(WIDE), arm(NARROW, num_failed=10), False)
    assert found.words == "LESS STABLE"
    assert found.reason.startswith("0 of 10 runs of the baseline and 10 of 20 of the variant failed")
    assert judge_stability(arm(NARROW[:4], num_failed=16), arm(WIDE), False).words == "MORE STABLE"


def test_one_failure_shows_nothing() -> None:
    found = judge_stability(arm(NARROW), arm(NARROW[:9], num_failed=1), False)
    assert found.words == "STABILITY UNKNOWN"


@pytest.mark.parametrize("values", [[1.0] * 8, [1.0, 2.0] * 4])
@pytest.mark.parametrize("paired", [True, False])
def test_arms_that_hardly_vary_are_not_told_apart(values: list[float], paired: bool) -> None:
    assert judge_stability(arm(np.array(values)), arm(np.array(values)), paired).words == "STABILITY UNKNOWN"


def test_arms_that_do_not_vary_cannot_be_tested() -> None:
    found = judge_stability(arm(np.ones(9)), arm(np.ones(9)), False)
    assert found.reason == "the seeds have too few distinct values to test their spread"
