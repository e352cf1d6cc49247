"""Seeds needed and effects detected, by the rule that decides verdicts."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from attnlab.errors import StatisticsError
from attnlab.statistics import Noise, compare, detectable_effect, seeds_needed
from attnlab.statistics.planning import make_plan, more_seeds
from attnlab.statistics.power import compute_power

PAIRED, UNPAIRED = Noise(1.0, 4), Noise(2.0, 8, growth=2.0, paired=False)


@pytest.mark.parametrize("power", [0.8, 0.9])
def test_many_seeds_are_statsmodels(power: float) -> None:
    paired = TTestPower().solve_power(effect_size=0.2, power=power, alpha=0.05)
    unpaired = TTestIndPower().solve_power(effect_size=0.2, power=power, alpha=0.05)
    assert seeds_needed(PAIRED, 0.2, power) == math.ceil(paired)
    assert seeds_needed(UNPAIRED, 0.2, power) == math.ceil(unpaired)


def test_few_seeds_are_more_than_a_t_test_needs() -> None:
    # A t test needs 10 pairs and 17 seeds an arm (Cohen 1988).
    assert (seeds_needed(PAIRED, 1.0), seeds_needed(UNPAIRED, 1.0)) == (13, 18)


@pytest.mark.parametrize("noise", [PAIRED, UNPAIRED, Noise(3.0, 5, 1.4, 0.01, paired=False)])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_one_seed_fewer_is_too_few(noise: Noise, alpha: float) -> None:
    n = int(seeds_needed(noise, 0.7, 0.8, alpha))
    assert compute_power(noise, n, 0.7, alpha) >= 0.8 > compute_power(noise, n - 1, 0.7, alpha)


@pytest.mark.parametrize("n", [5, 8, 30, 100])
def test_what_can_be_detected_has_its_power(n: int) -> None:
    effect = detectable_effect(PAIRED, n, 0.8)
    assert compute_power(PAIRED, n, effect) == pytest.approx(0.8, abs=1e-4)


def test_too_few_seeds_for_a_verdict_detect_nothing() -> None:
    assert math.isnan(detectable_effect(PAIRED, 4))
    assert seeds_needed(PAIRED, 1e6) == 5


def test_a_power_below_the_level_detects_a_difference_of_0() -> None:
    assert detectable_effect(PAIRED, 10, 0.001) == 0


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
        reached["pilot"] += compute_power(PAIRED, int(seeds_needed(Noise(sd**2, 4), 1.0)), 1.0) >= 0.8
        reached["bound"] += compute_power(PAIRED, int(make_plan(Noise(sd**2, 4), 5, 1.0).seeds[0.8]), 1.0) >= 0.8
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
