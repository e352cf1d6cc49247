"""The log scale: differences and thresholds in percent, figures as they are known."""

import json
import math

import numpy as np
import pytest

from attnlab.errors import StatisticsError
from attnlab.statistics import Question, Summary, compare, compare_summaries, paired_t

RNG = np.random.default_rng(3)
BASELINE = np.log(RNG.normal(50.0, 1.0, 8))
VARIANT = BASELINE + math.log(0.9) + RNG.normal(0, 0.01, 8)


def test_differences_are_percent_changes() -> None:
    found = compare(BASELINE, VARIANT, smallest=2.0, scale="log", higher_is_better=False)
    known = paired_t(VARIANT - BASELINE)
    assert found.difference == pytest.approx(100 * math.expm1(known.difference))
    assert found.interval == pytest.approx([100 * math.expm1(end) for end in found.weight.interval])
    assert found.verdict == "BETTER BY AT LEAST 2 %"
    assert found.estimate == known
    assert "%" in str(found)


def test_figures_are_shown_as_they_are() -> None:
    found = compare(BASELINE, VARIANT, scale="log", higher_is_better=False)
    assert found.per_seed[0][1] == pytest.approx(math.exp(BASELINE[0]))
    assert found.known.baseline.mean == pytest.approx(float(np.exp(BASELINE).mean()))
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
    assert found.method == "crossed two-way"
    assert found.per_seed[0][1] == pytest.approx(math.exp(float(baseline[0].mean())))


def test_what_has_no_log_is_refused() -> None:
    with pytest.raises(StatisticsError, match="has no logarithm"):
        compare(BASELINE, VARIANT, scale="log", floor=0.0)
    with pytest.raises(StatisticsError, match="must be 'linear' or 'log'"):
        compare(BASELINE, VARIANT, scale="ln")  # type: ignore[arg-type]
    with pytest.raises(StatisticsError, match="say nothing of their logs"):
        compare_summaries(Summary(1.0, 1.0, 5), Summary(1.0, 1.0, 5), Question(scale="log"))
