"""Effect sizes by hand and against scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics.effects import correlation, hedges_g, measure_effects, probability_above


def test_hedges_g_by_hand() -> None:
    # d = 2 with SDs of 1 and 8 degrees of freedom; J(8) = Γ(4)/(2·Γ(3.5)) = 0.90270.
    assert hedges_g((0.0, 1.0, 5), (2.0, 1.0, 5)) == pytest.approx(2 * 0.902703, rel=1e-5)
    # The common approximation 1 − 3/(4·df − 1) is near it.
    assert hedges_g((0.0, 1.0, 5), (2.0, 1.0, 5)) == pytest.approx(2 * (1 - 3 / 31), rel=1e-3)


def test_hedges_g_pools_by_degrees_of_freedom() -> None:
    pooled = math.sqrt((2 * 1.0 + 6 * 4.0) / 8)
    assert hedges_g((1.0, 1.0, 3), (0.0, 4.0, 7)) == pytest.approx(-0.902703 / pooled, rel=1e-5)


def test_hedges_g_is_unbiased() -> None:
    rng = np.random.default_rng(0)
    found = [measure_effects(rng.normal(0, 1, 5), rng.normal(0.8, 1, 5), False).hedges_g for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_probability_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(1)
    baseline, variant = rng.integers(0, 5, 7).astype(float), rng.integers(1, 6, 9).astype(float)
    known = stats.mannwhitneyu(variant, baseline).statistic / 63
    assert probability_above(baseline, variant) == pytest.approx(known)
    assert probability_above(np.array([1.0]), np.array([1.0])) == 0.5


def test_rho_is_pearsons() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(2, 6))
    assert correlation(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)
    assert math.isnan(correlation(np.ones(5), np.arange(5.0)))
    assert math.isnan(correlation(np.array([1.0, 2.0]), np.array([3.0, 4.0])))


def test_pairs_are_counted_where_there_are_pairs() -> None:
    baseline, variant = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 4.0])
    assert measure_effects(baseline, variant, True).num_ahead == 2
    assert measure_effects(baseline, variant, True, higher_is_better=False).num_ahead == 1
    apart = measure_effects(baseline, variant, False)
    assert apart.num_ahead is None
    assert math.isnan(apart.rho)


def test_what_cannot_be_told_is_not_told() -> None:
    assert math.isnan(hedges_g((1.0, 0.0, 5), (2.0, 0.0, 5)))
    assert math.isnan(hedges_g((1.0, math.nan, 1), (2.0, 1.0, 5)))
