"""Seeds needed and effects detected, against statsmodels, textbooks, and simulated power."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from attnlab.errors import StatisticsError
from attnlab.statistics import Noise, compare, detectable_effect, seeds_needed
from attnlab.statistics.planning import exaggeration_at, make_plan, more_seeds, power_at, power_of

PAIRED, UNPAIRED = Noise(1.0, 4), Noise(2.0, 8, growth=2.0)


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_seeds_are_statsmodels(effect: float, power: float) -> None:
    paired = TTestPower().solve_power(effect_size=effect, power=power, alpha=0.05)
    unpaired = TTestIndPower().solve_power(effect_size=effect, power=power, alpha=0.05)
    assert seeds_needed(PAIRED, effect, power) == math.ceil(paired)
    assert seeds_needed(UNPAIRED, effect, power) == math.ceil(unpaired)


def test_seeds_by_the_textbook() -> None:
    # An effect of half an SD takes 34 pairs or 64 an arm (Cohen 1988).
    assert (seeds_needed(PAIRED, 0.5), seeds_needed(UNPAIRED, 0.5)) == (34, 64)


@pytest.mark.parametrize(("n", "effect"), [(5, 0.5), (5, 2.0), (10, 1.0), (30, 0.3), (200, 0.2)])
def test_power_is_statsmodels(n: int, effect: float) -> None:
    assert power_of(PAIRED, n, effect) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=3e-6)


def test_power_of_large_effects_is_a_number() -> None:
    assert power_of(PAIRED, 2, 100.0) == pytest.approx(stats.nct.sf(stats.t.isf(0.025, 1), 1, 100 * math.sqrt(2)))
    assert power_of(PAIRED, 50, 1e6) == pytest.approx(1.0)
    assert power_of(Noise(0.0, 4), 5, 1.0) == 1.0


def test_power_is_as_simulated() -> None:
    draws = np.random.default_rng(0).normal(0.9, 1, (4000, 10))
    found = float(np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05))
    assert power_of(PAIRED, 10, 0.9) == pytest.approx(found, abs=0.03)


@pytest.mark.parametrize("noise", [PAIRED, UNPAIRED, Noise(3.0, 5, 1.4, 0.01)])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_one_seed_fewer_is_too_few(noise: Noise, alpha: float) -> None:
    n = seeds_needed(noise, 0.7, 0.8, alpha)
    assert power_of(noise, n, 0.7, alpha) >= 0.8 > power_of(noise, n - 1, 0.7, alpha)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_what_can_be_detected_has_its_power(n: int) -> None:
    effect = detectable_effect(PAIRED, n, 0.8)
    assert power_of(PAIRED, n, effect) == pytest.approx(0.8, abs=1e-4)


def test_too_few_examples_make_any_number_of_seeds_too_few() -> None:
    assert math.isinf(seeds_needed(Noise(1.0, 4, fixed=1.0), 1.0))
    assert math.isinf(seeds_needed(PAIRED, 1e-6))


def test_a_plan_takes_the_upper_bound_of_the_spread() -> None:
    plan = make_plan(Noise(4.0, 4), present=5, smallest=1.0)
    assert plan.sd == 2.0
    assert plan.sd_bound == pytest.approx(2 * math.sqrt(4 / stats.chi2.ppf(0.2, 4)))
    assert plan.seeds[0.8] == seeds_needed(Noise(plan.sd_bound**2, 4), 1.0, 0.8)
    assert plan.seeds[0.9] > plan.seeds[0.8] > seeds_needed(Noise(4.0, 4), 1.0, 0.8)
    assert plan.detectable[0.8] == pytest.approx(detectable_effect(Noise(plan.sd_bound**2, 4), 5))


def test_a_plan_that_takes_the_bound_reaches_its_power_more_often() -> None:
    rng = np.random.default_rng(2)
    reached = {"bound": 0, "pilot": 0}
    for _ in range(300):
        sd = float(np.std(rng.normal(size=5), ddof=1))
        reached["pilot"] += power_of(PAIRED, seeds_needed(Noise(sd**2, 4), 1.0), 1.0) >= 0.8
        reached["bound"] += power_of(PAIRED, make_plan(Noise(sd**2, 4), 5, 1.0).seeds[0.8], 1.0) >= 0.8
    assert reached["pilot"] / 300 < 0.55
    assert reached["bound"] / 300 > 0.75


def test_a_pilot_of_one_seed_plans_nothing() -> None:
    plan = make_plan(Noise(math.nan, math.nan), 1, 1.0)
    assert math.isnan(plan.sd_bound)
    assert all(map(math.isnan, [*plan.seeds.values(), *plan.detectable.values()]))


def test_more_seeds_settle_the_nearer_question() -> None:
    # A difference of 3 is settled by leaving out 0; one of 0 by leaving out the smallest effect.
    assert more_seeds(PAIRED, 5, 3.0, 1.0) < more_seeds(PAIRED, 5, 0.0, 1.0) < more_seeds(PAIRED, 5, 0.5, 1.0)
    assert more_seeds(Noise(1e-6, 4), 5, 1.0, 1.0) == 1.0


@pytest.mark.parametrize(("effect", "power"), [(0.0, 0.8), (-1.0, 0.8), (math.nan, 0.8), (1.0, 1.0), (1.0, 0.0)])
def test_impossible_plans_are_refused(effect: float, power: float) -> None:
    with pytest.raises(StatisticsError, match=r"must be (above 0|between 0 and 1)"):
        seeds_needed(PAIRED, effect, power)


def test_what_no_seeds_can_settle_has_no_number() -> None:
    degenerate = compare([1.0] * 6, [2.0] * 6, paired=False)
    assert math.isnan(degenerate.plan.more)
    assert math.isnan(compare([1.0, 2.0] * 3, [2.0, 1.0] * 3, obstacle="it leaks").plan.more)
    assert compare([1.0, 1.0], [2.0, 2.0], paired=False).plan.more == 3.0
    assert str(degenerate)


@pytest.mark.parametrize(("n", "effect"), [(5, 0.25), (5, 1.7), (10, 1.0), (40, 0.3)])
def test_power_from_a_standard_error_is_statsmodels(n: int, effect: float) -> None:
    assert power_at(1 / math.sqrt(n), n - 1, effect) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=3e-6)


@pytest.mark.parametrize(("n", "effect"), [(5, 0.25), (5, 1.0), (10, 1.0), (10, 2.0)])
def test_exaggeration_is_as_simulated(n: int, effect: float) -> None:
    draws = np.random.default_rng(n).normal(effect, 1, (400_000, n))
    found = np.abs(draws.mean(axis=1))[
        np.abs(stats.ttest_1samp(draws, 0, axis=1).statistic) > stats.t.isf(0.025, n - 1)
    ]
    assert exaggeration_at(1 / math.sqrt(n), n - 1, effect) == pytest.approx(float(found.mean()) / effect, rel=0.03)


def test_what_has_no_spread_is_found_as_it_is() -> None:
    assert (power_at(0.0, 4, 1.0), exaggeration_at(0.0, 4, 1.0)) == (1.0, 1.0)
    assert math.isnan(power_at(math.nan, math.nan, 1.0))
    assert math.isnan(exaggeration_at(math.nan, math.nan, 1.0))
