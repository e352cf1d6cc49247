"""Skewed differences: the guard, its p, and the exact test that may overrule t."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics import compare, paired_t

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
    assert found.inference.skew.high == pytest.approx(factor)
    assert any("its upper half is widened" in note for note in found.notes)


def test_normal_scores_are_hardly_touched() -> None:
    factors = []
    for _ in range(300):
        skew = compare(np.zeros(20), RNG.normal(size=20)).inference.skew
        factors.append(max(skew.low, skew.high))
    assert np.median(factors) < 1.3


def test_both_ends_are_moved_out_for_fewer_pairs_than_can_show_a_tail() -> None:
    symmetric = np.array([-1.2, -0.7, 0.0, 0.7, 1.2])
    for num_pairs, factor in ((5, 1.35), (7, 1.0)):
        differences = np.concatenate([symmetric, np.array([-0.3, 0.3])])[:num_pairs] + 0.5
        low, high = paired_t(differences).interval()
        shown = compare(np.zeros(num_pairs), differences).interval
        assert shown == pytest.approx((0.5 - (0.5 - low) * factor, 0.5 + (high - 0.5) * factor))
