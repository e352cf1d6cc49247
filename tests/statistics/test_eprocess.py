"""The e-process: its formula by integration, its level at all times at once, and the interval that belongs to it."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from attnlab.statistics import e_process
from attnlab.statistics.eprocess import confidence_interval, log_evidence


def test_evidence_is_the_ratio_of_likelihoods_of_t() -> None:
    """The density of t under δ ~ N(0, 1), over its density under δ = 0."""
    differences = np.random.default_rng(0).normal(0.8, 1.3, 7)
    t = float(stats.ttest_1samp(differences, 0).statistic)
    mixture, _ = integrate.quad(
        lambda effect: float(stats.nct.pdf(t, 6, effect * math.sqrt(7)) * stats.norm.pdf(effect)), -8, 8
    )
    assert e_process(differences).e == pytest.approx(mixture / stats.t.pdf(t, 6), rel=1e-6)


def test_evidence_does_not_depend_on_the_unit() -> None:
    differences = np.random.default_rng(1).normal(0.5, 1, 12)
    assert e_process(1e6 * differences).path == pytest.approx(e_process(differences).path)
    assert e_process(-differences).path == pytest.approx(e_process(differences).path)


def test_it_may_be_looked_at_after_every_seed() -> None:
    evidence = log_evidence(np.random.default_rng(2).standard_normal((5000, 200)))
    found = float((evidence >= math.log(20)).any(axis=1).mean())
    assert found <= 0.05


def test_its_mean_is_1_without_an_effect() -> None:
    evidence = np.exp(log_evidence(np.random.default_rng(3).standard_normal((400_000, 4))))
    assert evidence[:, 1].mean() == pytest.approx(1.0, abs=0.05)


def test_it_finds_what_is_there() -> None:
    evidence = log_evidence(np.random.default_rng(4).normal(1.0, 1.0, (2000, 20)))
    assert float((evidence >= math.log(20)).any(axis=1).mean()) > 0.8


def test_the_interval_holds_the_means_that_are_not_refuted() -> None:
    differences = np.random.default_rng(5).normal(2.0, 1.0, 10)
    for end in confidence_interval(differences):
        assert e_process(differences - end).e == pytest.approx(20.0)
    low, high = confidence_interval(differences, alpha=0.01)
    assert e_process(differences - low).e == pytest.approx(100.0)
    assert (low + high) / 2 == pytest.approx(differences.mean())


def test_few_seeds_refute_nothing() -> None:
    assert e_process(np.array([5.0])).e == 1.0
    assert e_process(np.array([5.0])).p == 1.0
    assert confidence_interval(np.array([1.0, 1.1])) == (-math.inf, math.inf)


def test_without_spread_it_stays_a_number() -> None:
    assert math.isfinite(e_process(np.ones(400)).e)
    assert e_process(np.zeros(10)).p == 1.0
