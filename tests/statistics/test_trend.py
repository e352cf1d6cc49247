"""Slopes over sizes and horizons, and what they are called: a difference that changes its side does not shrink."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import StatisticsError
from attnlab.statistics import compare
from attnlab.statistics.trend import (
    INCONCLUSIVE_TREND,
    WITH_SIZE,
    WITH_STEPS,
    PlacedScores,
    combine_places,
    decide_trend,
    estimate_slope,
    weigh_slope,
)  # fmt: skip

RNG = np.random.default_rng(3)
WIDE, ABOVE, BELOW = (-1.0, 1.0), (0.5, 1.0), (-1.0, -0.5)


def place(at: int, num: int, difference: float, sd: float = 1.0) -> PlacedScores:
    """Return a size of 2^at parameters."""
    baseline = RNG.normal(size=num)
    return PlacedScores(f"size {at}", 2.0**at, baseline, baseline + difference + sd * RNG.normal(size=num))


def test_the_slope_is_that_of_least_squares_per_doubling() -> None:
    places = [1e6, 3e6, 2e7, 4e7]
    differences = np.array([1.0, 0.4, 0.3, -0.2])
    assert weigh_slope(places) @ differences == pytest.approx(stats.linregress(np.log2(places), differences).slope)


def test_sizes_at_the_ends_alone_are_welchs_test() -> None:
    sizes = [place(20, 8, 1.0), place(21, 9, 1.0), place(22, 10, 0.2, sd=3.0)]
    found = estimate_slope(sizes).estimate
    first, last = (size.variant - size.baseline for size in (sizes[0], sizes[2]))
    welch = stats.ttest_ind(last, first, equal_var=False)
    assert found.t == pytest.approx(welch.statistic)
    assert found.df == pytest.approx(welch.df)
    assert found.difference == pytest.approx((last.mean() - first.mean()) / 2)


def test_few_seeds_widen_the_interval_and_p_agrees_with_it() -> None:
    slope = estimate_slope([place(20, 5, 3.0), place(21, 3, 2.0), place(22, 3, 1.0)])
    inference = slope.at(0.05)
    assert inference.interval[0] < slope.estimate.interval()[0]
    at_p = slope.at(inference.p)
    assert min(map(abs, at_p.interval)) == pytest.approx(0, abs=1e-9)


def test_examples_widen_the_interval_of_a_slope() -> None:
    by_example, sizes = RNG.normal(size=40), []
    for at in (20, 21, 22):
        baseline, noise = RNG.normal(size=(6, 40)) * 0.01, RNG.normal(size=(6, 1)) * 0.01
        sizes.append(PlacedScores(str(at), 2.0**at, baseline, baseline + at * by_example + noise))
    assert estimate_slope(sizes).estimate.se == pytest.approx(by_example.std(ddof=1) / np.sqrt(40), rel=0.05)
    averaged = [PlacedScores(one.name, one.place, one.baseline.mean(1), one.variant.mean(1)) for one in sizes]
    assert estimate_slope(averaged).estimate.se < 0.01


def test_a_size_with_two_seeds_and_sizes_that_are_one_are_refused() -> None:
    with pytest.raises(StatisticsError, match="size 21 has 2 paired seeds; a trend needs 3"):
        estimate_slope([place(20, 5, 1.0), place(21, 2, 1.0), place(22, 5, 1.0)])
    with pytest.raises(StatisticsError, match="places that differ"):
        weigh_slope([5.0, 5.0, 5.0])


def test_every_seed_has_a_slope_over_horizons_of_its_own() -> None:
    steps, shifts = (1000, 2000, 4000), RNG.normal(size=5)
    ones = dict.fromkeys(range(5), 1.0)
    horizons = [
        PlacedScores(str(step), step, ones, {seed: 1.0 + shifts[seed] * at for seed in ones})
        for at, step in enumerate(steps)
    ]
    baseline, variant = combine_places(horizons)
    assert [variant[str(seed)] - baseline[str(seed)] for seed in range(5)] == pytest.approx(shifts)
    horizons[1] = PlacedScores("2000", 2000, {**horizons[1].baseline, 3: None}, horizons[1].variant)
    assert list(combine_places(horizons)[0]) == ["0", "1", "2", "4"]


def test_rows_of_examples_stay_rows() -> None:
    horizons = [PlacedScores(str(step), step, RNG.normal(size=(5, 7)), RNG.normal(size=(5, 7))) for step in (10, 20)]
    found = compare(*combine_places(horizons))
    assert found.data.num_examples == 7


@pytest.mark.parametrize(
    ("interval", "first", "last", "word"),
    [
        (BELOW, ABOVE, WIDE, "SHRINKS WITH SIZE"),  # a difference that vanishes
        (BELOW, ABOVE, ABOVE, "SHRINKS WITH SIZE"),
        (ABOVE, BELOW, WIDE, "SHRINKS WITH SIZE"),
        (ABOVE, WIDE, ABOVE, "GROWS WITH SIZE"),
        (BELOW, ABOVE, BELOW, "GROWS WITH SIZE"),  # on the other side, as the reason says
        (ABOVE, BELOW, ABOVE, "GROWS WITH SIZE"),
        (BELOW, WIDE, WIDE, INCONCLUSIVE_TREND),
        (WIDE, ABOVE, ABOVE, INCONCLUSIVE_TREND),
        ((-0.05, 0.05), ABOVE, ABOVE, "NO TREND WORTH HAVING"),
        ((0.01, 0.05), ABOVE, ABOVE, "NO TREND WORTH HAVING"),
    ],
)
def test_the_words_of_a_trend(
    interval: tuple[float, float], first: tuple[float, float], last: tuple[float, float], word: str
) -> None:
    assert decide_trend(interval, 0.1, first, last, WITH_SIZE)[0] == word


def test_horizons_have_words_of_their_own() -> None:
    words, why = decide_trend(BELOW, 0.1, ABOVE, BELOW, WITH_STEPS)
    assert words == "GAP OPENING"
    assert "has changed its side" in why
    found = [decide_trend(slope, 0.1, ABOVE, ABOVE, WITH_STEPS)[0] for slope in (BELOW, ABOVE, (0.0, 0.01))]
    assert found == ["GAP CLOSING", "GAP OPENING", "GAP STEADY"]
