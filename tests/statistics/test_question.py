"""The settings of a comparison: the log scale, levels of looks, and errors for wrong values."""

import json
import math
from typing import Any

import numpy as np
import pytest

from attnlab.errors import AttnlabError, StatisticsError
from attnlab.statistics import Question, Summary, compare, compare_summaries, look_limits, paired_t

GOOD = [70.0, 71.0, 69.5, 70.4, 71.2]
RNG = np.random.default_rng(3)
BASELINE = np.log(RNG.normal(50.0, 1.0, 8))
VARIANT = BASELINE + math.log(0.9) + RNG.normal(0, 0.01, 8)


def test_differences_are_percent_changes() -> None:
    found = compare(BASELINE, VARIANT, smallest=2.0, scale="log", higher_is_better=False)
    known = paired_t(VARIANT - BASELINE)
    assert found.difference == pytest.approx(100 * math.expm1(known.difference))
    assert found.interval == pytest.approx([100 * math.expm1(end) for end in found.inference.interval])
    assert found.verdict == "BETTER BY AT LEAST 2 %"
    assert found.estimate == known
    assert "%" in str(found)


def test_figures_are_shown_as_they_are() -> None:
    found = compare(BASELINE, VARIANT, scale="log", higher_is_better=False)
    assert found.per_seed[0][1] == pytest.approx(math.exp(BASELINE[0]))
    assert found.data.baseline.mean == pytest.approx(float(np.exp(BASELINE).mean()))
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert record["scale"] == "log"
    assert record["plan"]["detectable"]["0.8"] == pytest.approx(found.plan.detectable[0.8])


def test_the_threshold_is_the_same_both_ways() -> None:
    shift = math.log(1.0101)
    noise = RNG.normal(0, 1e-5, 8)
    up = compare(BASELINE, BASELINE + shift + noise, smallest=1.0, scale="log")
    down = compare(BASELINE, BASELINE - shift + noise, smallest=1.0, scale="log")
    assert (up.verdict, down.verdict) == ("BETTER BY AT LEAST 1 %", "WORSE BY AT LEAST 1 %")


def test_documents_are_crossed() -> None:
    baseline = RNG.normal(3.0, 0.1, (6, 150))
    found = compare(baseline, baseline - 0.05 + RNG.normal(0, 0.05, (6, 150)), scale="log", higher_is_better=False)
    assert found.estimate.method == "crossed two-way"
    assert found.per_seed[0][1] == pytest.approx(math.exp(float(baseline[0].mean())))


def test_what_has_no_log_is_refused() -> None:
    with pytest.raises(StatisticsError, match="has no logarithm"):
        compare(BASELINE, VARIANT, scale="log", floor=0.0)
    with pytest.raises(StatisticsError, match="must be 'linear' or 'log'"):
        compare(BASELINE, VARIANT, scale="ln")  # type: ignore[arg-type]
    with pytest.raises(StatisticsError, match="needs the score of each seed"):
        compare_summaries(Summary(1.0, 1.0, 5), Summary(1.0, 1.0, 5), Question(scale="log"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smallest": 0.0}, "smallest=0.0: the smallest difference worth having must be a number above 0"),
        ({"smallest": -1.0}, "smallest=-1.0"),
        ({"smallest": float("nan")}, "smallest=nan"),
        ({"smallest": "1"}, "smallest='1'"),
        ({"alpha": 0.0}, "alpha=0.0 must be a number between 0 and 0.5"),
        ({"alpha": 5}, "alpha=5"),
        ({"looks": "always"}, "looks='always'"),
        ({"looks": (4, 8)}, "5 seeds are not one of the declared looks"),
    ],
)
def test_wrong_settings_are_one_clear_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AttnlabError, match=message):
        compare(GOOD, GOOD, **settings)


def test_a_level_that_is_no_number_is_refused() -> None:
    with pytest.raises(StatisticsError, match="floor=nan must be a finite number"):
        compare(GOOD, GOOD, floor=math.nan)


def test_a_seed_that_failed_brings_a_look_back_to_the_one_before() -> None:
    scores = np.random.default_rng(5).normal(0, 1, 10)
    found = compare(scores, [*(scores[:9] + 1), None], looks=(5, 10, 15, 20))
    assert found.level == look_limits()[5]


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        ((0.2, 1.3), (0.2, 1.0)),
        ((-4.0, 0.1), (-1.0, 0.1)),
        ((-math.inf, math.inf), (-1.0, 1.0)),
        ((-0.1, 0.1), (-0.1, 0.1)),
    ],
)
def test_intervals_are_shown_within_what_scores_can_differ_by(
    interval: tuple[float, float], shown: tuple[float, float]
) -> None:
    assert Question(limits=(0.0, 1.0)).to_interval(interval) == shown
    assert Question().to_interval(interval) == interval


def test_an_unknown_interval_stays_unknown() -> None:
    assert all(map(math.isnan, Question(limits=(0.0, 1.0)).to_interval((math.nan, math.nan))))


def test_limits_change_what_is_shown_and_not_the_verdict() -> None:
    arms = [0.0, 0.0, 0.1, 0.0, 0.3], [1.0, 0.9, 1.0, 0.5, 1.0]
    free, limited = compare(*arms, smallest=0.1), compare(*arms, smallest=0.1, limits=(0, 1))
    assert free.interval[1] > 1 == limited.interval[1] == limited.interval_at(0.01)[1]
    assert (free.verdict, free.interval[0]) == (limited.verdict, limited.interval[0])
