"""Power and exaggeration, against statsmodels and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from attnlab.statistics import compare
from attnlab.statistics.planning import exaggeration_at, power_at


@pytest.mark.parametrize(("n", "effect"), [(5, 0.25), (5, 1.7), (10, 1.0), (40, 0.3)])
def test_power_is_statsmodels(n: int, effect: float) -> None:
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


def test_exaggeration_is_said_where_power_is_low() -> None:
    rng = np.random.default_rng(0)
    baseline, noise = rng.normal(70, 2, 5), rng.normal(0, 2, 5)
    noise -= noise.mean()
    low = compare(baseline, baseline + noise + 5.0, smallest=1.0)
    assert low.decision.is_difference
    assert low.power_at_smallest < 0.5
    assert any(f"it is shown {low.exaggeration:.2g} × too large on average" in note for note in low.notes)
    high = compare(baseline, baseline + noise / 20 + 5.0, smallest=1.0)
    assert not any("too large on average" in note for note in high.notes)


def test_a_plan_is_not_made_for_what_is_decided() -> None:
    rng = np.random.default_rng(1)
    baseline, noise = rng.normal(70, 2, 5), rng.normal(0, 2, 5)
    decided = compare(baseline, baseline + noise - noise.mean() + 8.0, smallest=0.2)
    assert decided.verdict.startswith("BETTER")
    assert (decided.plan.more, decided.record()["plan"]["is_decided"]) == (0.0, True)
    assert "decided with 5 per arm; no more are needed" in str(decided)
    assert "power)" not in str(decided)
    still_open = compare(baseline, baseline + noise, smallest=1.0)
    assert still_open.verdict == f"INCONCLUSIVE (about {still_open.plan.more:.0f} more seeds)"
    assert f"about {still_open.plan.more:.0f} more per arm if the difference stays at" in str(still_open)
