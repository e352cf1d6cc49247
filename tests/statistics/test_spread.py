"""Intervals of spread: by tables, by inverting the tests they belong to, and by how often they cover."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics.spread import (
    measure_spread,
    paired_ratio_interval,
    ratio_interval,
    sd_interval,
    sd_upper_bound,
)


def test_sd_interval_by_a_table() -> None:
    # χ²(4) is 11.143 and 0.484 at 2.5 % of either tail.
    assert sd_interval(1.0, 5) == pytest.approx((math.sqrt(4 / 11.1433), math.sqrt(4 / 0.484419)), rel=1e-5)


def test_upper_bound_by_a_table() -> None:
    # χ²(4) is below 1.6488 one time in five.
    assert sd_upper_bound(2.0, 4, 0.8) == pytest.approx(2 * math.sqrt(4 / 1.64878), rel=1e-4)


def test_ratio_interval_ends_where_the_f_test_turns() -> None:
    low, high = ratio_interval(2.0, 6, 9)
    assert stats.f.sf((2.0 / low) ** 2, 8, 5) == pytest.approx(0.025)
    assert stats.f.cdf((2.0 / high) ** 2, 8, 5) == pytest.approx(0.025)


def test_paired_ratio_interval_ends_where_the_test_of_pitman_and_morgan_turns() -> None:
    rng = np.random.default_rng(4)
    baseline = rng.normal(size=9)
    variant = 2 * (0.6 * baseline + 0.8 * rng.normal(size=9))
    ratio = float(variant.std(ddof=1) / baseline.std(ddof=1))
    rho = float(np.corrcoef(baseline, variant)[0, 1])
    for end in paired_ratio_interval(ratio, rho, 9):
        # Scaled by a ratio that is true, sum and difference of the arms are uncorrelated.
        scaled = variant / end
        assert stats.pearsonr(scaled + baseline, scaled - baseline).pvalue == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("paired", [True, False])
def test_ratio_intervals_cover_what_they_say(paired: bool) -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(1500):
        baseline, own = rng.normal(size=(2, 6))
        variant = 3 * (0.7 * baseline + math.sqrt(0.51) * own if paired else own)
        rho = float(np.corrcoef(baseline, variant)[0, 1]) if paired else None
        sides = [(float(arm.std(ddof=1)), 6) for arm in (baseline, variant)]
        low, high = measure_spread(sides[0], sides[1], rho).ratio_interval
        covered += low <= 3 <= high
    assert covered / 1500 == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 1500))


def test_intervals_say_what_they_assume() -> None:
    assert measure_spread((1.0, 5), (2.0, 5)).assumption == "assuming normality and independent arms"
    assert measure_spread((1.0, 5), (2.0, 5), rho=0.3).assumption == "assuming normality"


def test_without_spread_there_is_no_ratio() -> None:
    spread = measure_spread((0.0, 5), (1.0, 5))
    assert math.isnan(spread.ratio)
    assert all(map(math.isnan, spread.ratio_interval))
    assert all(map(math.isnan, sd_interval(math.nan, 1)))
    assert math.isnan(sd_upper_bound(math.nan, 0))


def test_arms_that_move_together_have_a_sure_ratio() -> None:
    assert paired_ratio_interval(2.0, 1.0, 6) == pytest.approx((2.0, 2.0))
