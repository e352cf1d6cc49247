"""The two-way bootstrap: against the crossed variance where the metric is a mean, and by how often it covers."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab.errors import StatisticsError
from attnlab.statistics import crossed
from attnlab.statistics.bootstrap import corpus_estimate

Table = NDArray[np.float64]


def mean(run: Table) -> float:
    return float(run.mean())


def correlation(run: Table) -> float:
    return float(np.corrcoef(run[:, 0], run[:, 1])[0, 1])


def test_of_a_mean_it_is_near_the_crossed_variance() -> None:
    rng = np.random.default_rng(0)
    baseline = rng.normal(size=(8, 1)) + 5 * rng.normal(size=(1, 150)) + 0.5 * rng.normal(size=(8, 150))
    variant = baseline + rng.normal(size=(8, 1)) + 4 * rng.normal(size=(1, 150)) + 0.5 * rng.normal(size=(8, 150))
    found, known = corpus_estimate(mean, baseline, variant), crossed(variant - baseline)
    assert found.difference == pytest.approx(known.difference)
    assert found.se == pytest.approx(known.se, rel=0.12)
    assert found.df == 7


def test_seeds_alone_give_the_t_test() -> None:
    """Where examples do not matter, SE·√(n/(n − 1)) is s/√n."""
    rng = np.random.default_rng(1)
    by_seed = rng.normal(size=(5, 1)) * np.ones((5, 30))
    found = corpus_estimate(mean, np.zeros((5, 30)), by_seed, num_draws=4000)
    assert found.se == pytest.approx(float(by_seed[:, 0].std(ddof=1)) / math.sqrt(5), rel=0.05)


@pytest.mark.parametrize("paired", [True, False])
def test_a_correlation_is_found_different_as_often_as_said(paired: bool) -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(80):
        labels = rng.normal(size=(1, 60))
        runs = [
            np.stack([np.broadcast_to(labels, (5, 60)), labels + rng.normal(size=(5, 60))], axis=2) for _ in range(2)
        ]
        found += corpus_estimate(correlation, runs[0], runs[1], paired, num_draws=100).p < 0.05
    assert found / 80 <= 0.07


def test_it_is_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    baseline, variant = rng.normal(size=(2, 5, 20))
    assert corpus_estimate(mean, baseline, variant) == corpus_estimate(mean, baseline, variant)


def test_what_no_metric_can_take_is_refused() -> None:
    good = np.ones((5, 4))
    with pytest.raises(StatisticsError, match=r"needs \[seed, example, …\] of the baseline"):
        corpus_estimate(mean, np.ones(5), good)
    with pytest.raises(StatisticsError, match="both must be evaluated"):
        corpus_estimate(mean, np.ones((5, 3)), good)
    with pytest.raises(StatisticsError, match="the metric of run number 1 of the baseline is nan"):
        corpus_estimate(lambda run: math.nan, good, good)
    with pytest.raises(StatisticsError, match="defined on any examples"):
        corpus_estimate(
            lambda run: 1.0 if len(np.unique(run)) == 4 else math.nan,
            np.arange(20.0).reshape(5, 4),
            good + np.arange(4),
        )


def test_one_seed_has_no_standard_error() -> None:
    assert math.isnan(corpus_estimate(mean, np.ones((1, 4)), np.zeros((1, 4))).se)
