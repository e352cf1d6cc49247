"""Power is how often verdicts find a difference; that of the plain t test agrees with statsmodels."""

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from attnlab.statistics import Noise, compare
from attnlab.statistics.power import compute_exaggeration, compute_power, power_at

PAIRED = Noise(1.0, math.inf)
UNPAIRED = Noise(2.0, math.inf, growth=2.0, paired=False)
NUM_STUDIES = 400


def find_differences(n: int, effect: float, paired: bool, alpha: float = 0.05) -> list[float]:
    """Return the differences of simulated comparisons whose verdict is BETTER or WORSE."""
    rng, found = np.random.default_rng([n, paired]), []
    for _ in range(NUM_STUDIES):
        baseline = np.zeros(n) if paired else rng.standard_normal(n)
        comparison = compare(baseline, effect + rng.standard_normal(n), paired, smallest=1e6, alpha=alpha)
        if comparison.decision.is_difference:
            found.append(comparison.difference)
    return found


@pytest.mark.parametrize(
    ("n", "effect", "paired", "alpha"),
    [
        (5, 1.86, True, 0.05), (6, 2.42, True, 0.05), (7, 1.63, True, 0.05), (8, 1.06, True, 0.05),
        (10, 1.0, True, 0.05), (10, 1.85, True, 0.005), (15, 0.85, True, 0.05), (20, 0.5, True, 0.05),
        (5, 2.42, False, 0.05), (8, 1.3, False, 0.05), (15, 1.47, False, 0.005),
    ],
)  # fmt: skip
def test_power_is_that_of_verdicts(n: int, effect: float, paired: bool, alpha: float) -> None:
    found = len(find_differences(n, effect, paired, alpha)) / NUM_STUDIES
    # Three standard errors of the simulation.
    assert compute_power(PAIRED if paired else UNPAIRED, n, effect, alpha) == pytest.approx(found, abs=0.075)


def test_power_over_seeds_and_examples_is_that_of_verdicts() -> None:
    rng, found = np.random.default_rng(3), 0
    for _ in range(NUM_STUDIES):
        table = 1.5 + rng.standard_normal((6, 1)) + 5 * rng.standard_normal((1, 100)) + rng.standard_normal((6, 100))
        found += compare(np.zeros_like(table), table, smallest=1e6).decision.is_difference
    assert compute_power(Noise(1.01, math.inf, fixed=0.25), 6, 1.5) == pytest.approx(found / NUM_STUDIES, abs=0.075)


def test_a_plan_of_a_t_test_for_80_percent_has_less() -> None:
    # The figure that `attnlab plan` had promised as 80 %.
    assert power_at(1.16 / math.sqrt(8), 7, 1.33) == pytest.approx(0.8, abs=0.01)
    assert compute_power(Noise(1.16**2, math.inf), 8, 1.33) == pytest.approx(0.66, abs=0.02)


@pytest.mark.parametrize("n", [5, 10, 40])
def test_more_seeds_and_larger_effects_have_more_power(n: int) -> None:
    powers = [compute_power(PAIRED, n, effect) for effect in (0.0, 0.3, 0.6, 1.2, 5.0, 1e6)]
    assert powers == sorted(powers)
    assert powers[0] < 0.06
    assert powers[-1] == pytest.approx(1.0)
    assert compute_power(PAIRED, n + 1, 0.6) > compute_power(PAIRED, n, 0.6)


@pytest.mark.parametrize(("n", "effect", "paired"), [(5, 1.0, True), (10, 0.5, True), (8, 0.8, False)])
def test_exaggeration_is_that_of_verdicts(n: int, effect: float, paired: bool) -> None:
    found = np.abs(find_differences(n, effect, paired)).mean() / effect
    assert compute_exaggeration(PAIRED if paired else UNPAIRED, n, effect) == pytest.approx(found, rel=0.15)


def test_what_has_no_spread_is_found_as_it_is() -> None:
    flat, unknown = Noise(0.0, 4), Noise(math.nan, math.nan)
    assert (compute_power(flat, 5, 1.0), compute_exaggeration(flat, 5, 1.0)) == (1.0, 1.0)
    assert math.isnan(compute_power(unknown, 5, 1.0))
    assert math.isnan(compute_exaggeration(unknown, 5, 1.0))


def test_too_few_seeds_for_a_verdict_find_nothing() -> None:
    assert compute_power(PAIRED, 4, 100.0) == 0.0


@pytest.mark.parametrize(("n", "effect"), [(5, 0.25), (5, 1.7), (10, 1.0), (40, 0.3)])
def test_power_of_t_is_statsmodels(n: int, effect: float) -> None:
    assert power_at(1 / math.sqrt(n), n - 1, effect) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=3e-6)
    assert math.isnan(power_at(math.nan, math.nan, 1.0))
