"""Skewed differences: the guard, its p, and the exact test that may overrule t."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics import compare, paired_t, sign_flip
from attnlab.statistics.exact import sign_flip_interval

RNG = np.random.default_rng(0)
ZERO = np.zeros(8)
SKEWED = np.array([-1.0, -0.9, -1.1, -0.8, -1.2, -1.0, 0.9, -0.7])


def test_skewness_of_pairs_is_scipys() -> None:
    assert compare(ZERO, SKEWED).skewness == pytest.approx(float(stats.skew(SKEWED)))
    assert compare(ZERO, -SKEWED).skewness == pytest.approx(-float(stats.skew(SKEWED)))


def test_arms_that_are_skewed_alike_are_not_skewed_apart() -> None:
    assert compare(SKEWED, SKEWED + 1e-3, paired=False).skewness == pytest.approx(0.0, abs=1e-9)
    assert compare(ZERO + RNG.normal(0, 1e-6, 8), SKEWED, paired=False).skewness == pytest.approx(
        float(stats.skew(SKEWED)), rel=0.01
    )


def test_the_end_on_the_side_of_the_long_tail_is_moved_out() -> None:
    found, plain = compare(ZERO, SKEWED), paired_t(SKEWED).interval()
    factor = 1 + 6 * (float(stats.skew(SKEWED)) / math.sqrt(8) - 0.1)
    assert found.estimate.difference - plain[0] == pytest.approx(found.estimate.difference - found.interval_at(0.05)[0])
    assert found.weight.skew.high == pytest.approx(factor)
    assert any("the upper end is taken" in note for note in found.notes)


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("paired", [True, False])
def test_p_is_at_most_the_level_just_if_the_interval_leaves_out_0(n: int, paired: bool) -> None:
    for _ in range(60):
        baseline, variant = np.exp(RNG.normal(size=n)), np.exp(RNG.normal(0.8, 1.0, n))
        found = compare(baseline, variant, paired)
        for level in (0.2, 0.05, 0.01, 0.001):
            low, high = found.interval_at(level)
            assert (not low <= 0 <= high) == (found.redecide(level).p <= level)
            # A family relies on it: p is the same at any level that is used.
            assert level > 0.05 or found.redecide(level).p == found.p


def test_normal_scores_are_hardly_touched() -> None:
    factors = []
    for _ in range(300):
        skew = compare(np.zeros(20), RNG.normal(size=20)).weight.skew
        factors.append(max(skew.low, skew.high))
    assert np.median(factors) < 1.3


def test_the_exact_test_overrules_t_where_they_disagree() -> None:
    differences = np.array([1.1, 0.3, 0.5, -0.2, -0.4, 1.5, 1.5, 2.2])
    found = compare(ZERO, differences, smallest=0.1)
    assert found.estimate.p < 0.05 < sign_flip(differences).p
    assert found.p == sign_flip(differences).p
    assert found.verdict.startswith("INCONCLUSIVE")
    assert found.interval[0] <= 0 < found.interval[1]
    assert any("the exact sign-flip test overrules t" in note for note in found.notes)


def test_five_pairs_are_left_to_t() -> None:
    differences = np.array([1.0, 1.1, 0.9, 1.2, 0.8])
    assert sign_flip(differences).p == 0.0625
    assert compare(np.zeros(5), differences).verdict.startswith("BETTER")


def test_both_ends_are_moved_out_for_fewer_pairs_than_can_show_a_tail() -> None:
    symmetric = np.array([-1.2, -0.7, 0.0, 0.7, 1.2])
    for num_pairs, factor in ((5, 1.35), (7, 1.0)):
        differences = np.concatenate([symmetric, np.array([-0.3, 0.3])])[:num_pairs] + 0.5
        low, high = paired_t(differences).interval()
        shown = compare(np.zeros(num_pairs), differences).interval
        assert shown == pytest.approx((0.5 - (0.5 - low) * factor, 0.5 + (high - 0.5) * factor))


def test_the_exact_interval_holds_what_the_exact_test_does_not_reject() -> None:
    differences = RNG.normal(1.0, 1.0, 9)
    for alpha in (0.05, 0.2):
        low, high = sign_flip_interval(differences, alpha)
        for end, outward in ((low, -1), (high, 1)):
            assert sign_flip(differences - end - outward * 1e-6).p <= alpha
            assert sign_flip(differences - end + outward * 1e-6).p > alpha
    assert sign_flip_interval(differences[:5]) == (-math.inf, math.inf)


def test_drawn_intervals_are_near_t() -> None:
    differences = RNG.normal(0.5, 1.0, 40)
    assert sign_flip_interval(differences) == pytest.approx(paired_t(differences).interval(), abs=0.05)
