"""Each estimate against scipy, statsmodels and values worked by hand; intervals cover as often as they say."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from attnlab.statistics import crossed, crossed_apart, paired_t, welch
from attnlab.statistics.estimate import Estimate, mean_squares, satterthwaite, welch_from
from attnlab.statistics.scores import Numbers

RNG = np.random.default_rng(7)
BASELINE = RNG.normal(70, 1, 8)
VARIANT = BASELINE + RNG.normal(0.6, 0.8, 8)


def test_paired_t_is_scipys() -> None:
    found, known = paired_t(VARIANT - BASELINE), stats.ttest_rel(VARIANT, BASELINE)
    assert (found.t, found.p, found.df) == pytest.approx((known.statistic, known.pvalue, 7), rel=1e-12)
    assert found.interval() == pytest.approx(tuple(known.confidence_interval(0.95)), rel=1e-12)
    assert found.interval(0.01) == pytest.approx(tuple(known.confidence_interval(0.99)), rel=1e-12)


def test_paired_t_by_hand() -> None:
    found = paired_t(np.array([1.0, 2.0, 3.0]))
    assert (found.difference, found.se, found.df) == pytest.approx((2.0, 1 / math.sqrt(3), 2))


@pytest.mark.parametrize("sizes", [(8, 8), (8, 5), (3, 8)])
def test_welch_is_scipys(sizes: tuple[int, int]) -> None:
    baseline, variant = BASELINE[: sizes[0]], 3 * VARIANT[: sizes[1]]
    found, known = welch(baseline, variant), stats.ttest_ind(variant, baseline, equal_var=False)
    assert (found.t, found.p, found.df) == pytest.approx((known.statistic, known.pvalue, known.df), rel=1e-12)
    assert found.interval() == pytest.approx(tuple(known.confidence_interval(0.95)), rel=1e-12)


def test_welch_from_moments_is_the_same() -> None:
    moments = [(float(arm.mean()), float(arm.std(ddof=1)), len(arm)) for arm in (BASELINE, VARIANT)]
    assert welch_from(*moments).p == pytest.approx(welch(BASELINE, VARIANT).p, rel=1e-12)


def test_mean_squares_are_those_of_a_two_way_analysis() -> None:
    table = RNG.normal(size=(4, 6)) + RNG.normal(size=(4, 1)) + RNG.normal(size=(1, 6))
    seed, example = (index.ravel() for index in np.indices(table.shape))
    dummies = [np.eye(4)[seed][:, 1:], np.eye(6)[example][:, 1:]]
    full = sm.OLS(table.ravel(), sm.add_constant(np.hstack(dummies))).fit()
    without = [sm.OLS(table.ravel(), sm.add_constant(dummies[other])).fit() for other in (1, 0)]
    known = [(reduced.ssr - full.ssr) / df for reduced, df in zip(without, (3, 5), strict=True)]
    assert mean_squares(table) == pytest.approx((*known, full.ssr / 15), rel=1e-9)


def test_crossed_by_hand() -> None:
    # Means of the seeds are 1, 3, 5 and of the examples 2, 4; residuals are ±1, ∓1 and 0.
    table = np.array([[1.0, 1.0], [1.0, 5.0], [4.0, 6.0]])
    ms_seed, ms_example, ms_residual = 8.0, 6.0, 2.0
    assert mean_squares(table) == pytest.approx((ms_seed, ms_example, ms_residual))
    found = crossed(table)
    assert found.difference == pytest.approx(3.0)
    assert found.se == pytest.approx(math.sqrt((ms_seed + ms_example - ms_residual) / 6))
    assert found.df == pytest.approx(12**2 / (8**2 / 2 + 6**2 / 1 + 2**2 / 2))


def test_crossed_without_a_share_of_the_examples_is_the_paired_t() -> None:
    # Residuals alone, arranged so that every example has the same mean and every seed too.
    table = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    found = crossed(table + np.array([[0.1], [0.0], [-0.1], [0.0]]))
    assert found.note.startswith("the variance over examples was estimated below 0")
    assert found.df == 3
    assert found.se == pytest.approx(math.sqrt(np.var([0.1, 0.0, -0.1, 0.0], ddof=1) / 4))


def test_crossed_apart_with_independent_arms_agrees_with_pairs_on_average() -> None:
    pairs = [RNG.normal(size=(2, 6, 40)) + RNG.normal(size=(2, 6, 1)) for _ in range(400)]
    apart = np.mean([crossed_apart(*pair).se ** 2 for pair in pairs])
    paired = np.mean([crossed(pair[1] - pair[0]).se ** 2 for pair in pairs])
    assert apart == pytest.approx(paired, rel=0.1)


def draw_table(rng: np.random.Generator, sds: tuple[float, float, float]) -> Numbers:
    seed, example, residual = sds
    table: Numbers = (
        seed * rng.normal(size=(5, 1)) + example * rng.normal(size=(1, 60)) + residual * rng.normal(size=(5, 60))
    )
    return table


@pytest.mark.parametrize("sds", [(1.0, 0.0, 3.0), (0.3, 3.0, 3.0), (1.0, 3.0, 3.0), (0.0, 3.0, 1.0)])
def test_crossed_intervals_cover_what_they_say(sds: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(1)
    found = [crossed(draw_table(rng, sds)) for _ in range(1500)]
    covered = np.mean([low <= 0 <= high for low, high in (one.interval() for one in found)])
    # Three standard errors of 1500 draws; wider than 95 % is no fault.
    assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 1500)


def test_one_seed_leaves_all_but_the_difference_unknown() -> None:
    found = paired_t(np.array([1.5]))
    assert found.difference == 1.5
    assert math.isnan(found.p)
    assert all(map(math.isnan, found.interval()))
    assert math.isnan(welch(np.array([1.0]), np.array([2.0, 3.0])).p)


def test_satterthwaite_survives_any_scale() -> None:
    plain = satterthwaite([1.0, 3.0], [4, 9])
    assert plain == pytest.approx(16 / (1 / 4 + 9 / 9))
    assert satterthwaite([1e200, 3e200], [4, 9]) == pytest.approx(plain)
    assert satterthwaite([1e-200, 3e-200], [4, 9]) == pytest.approx(plain)
    assert math.isnan(satterthwaite([0.0, 0.0], [4, 9]))


def test_estimates_say_how_they_were_made() -> None:
    table = RNG.normal(size=(3, 4))
    found: list[Estimate] = [paired_t(VARIANT), welch(BASELINE, VARIANT), crossed(table), crossed_apart(table, table)]
    methods = [one.method for one in found]
    assert methods == ["paired t", "Welch t", "crossed two-way", "crossed two-way, seeds apart"]
