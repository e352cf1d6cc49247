"""Exact tests against scipy's and values worked by hand, and the smallest p that so many seeds allow."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics import paired_t, permutation, sign_flip
from attnlab.statistics.exact import sign_flip_interval
from attnlab.statistics.scores import Numbers


def test_sign_flips_by_hand() -> None:
    # Of the eight sums ±1 ±2 ±3, 6 and −6 reach 6; four reach 4 or more.
    assert sign_flip(np.array([1.0, 2.0, 3.0])).p == 2 / 8
    assert sign_flip(np.array([-1.0, 2.0, 3.0])).p == 4 / 8
    assert sign_flip(np.zeros(3)).p == 1.0


@pytest.mark.parametrize("n", [3, 5, 8])
def test_sign_flips_are_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.5, 1, n)
    known = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=1_000_000, alternative="two-sided"
    )
    assert sign_flip(differences).p == pytest.approx(known.pvalue)


@pytest.mark.parametrize("sizes", [(3, 3), (4, 6), (6, 5)])
def test_permutations_are_counted_in_full(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    baseline, variant = rng.normal(0, 1, sizes[0]), rng.normal(1, 1, sizes[1])

    def distance(one: Numbers, other: Numbers, axis: int) -> Numbers:
        found: Numbers = np.abs(np.mean(one, axis=axis) - np.mean(other, axis=axis))
        return found

    known = stats.permutation_test(
        (baseline, variant), distance, n_resamples=1_000_000, alternative="greater", vectorized=True
    )
    assert permutation(baseline, variant).p == pytest.approx(known.pvalue)


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.25), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_pairs_allow_no_smaller_p(n: int, smallest: float) -> None:
    found = sign_flip(np.arange(1.0, n + 1))
    assert (found.p, found.smallest) == (smallest, smallest)


@pytest.mark.parametrize(("sizes", "smallest"), [((3, 3), 0.1), ((5, 5), 2 / 252), ((3, 4), 1 / 35)])
def test_two_arms_allow_no_smaller_p(sizes: tuple[int, int], smallest: float) -> None:
    found = permutation(np.arange(float(sizes[0])), 100 + np.arange(float(sizes[1])))
    assert (found.p, found.smallest) == pytest.approx((smallest, smallest))


def test_rounding_does_not_split_ties() -> None:
    # 0.1 + 0.2 and 0.3 are the same difference, though not the same double.
    assert sign_flip(np.array([0.1, 0.2, -0.3])).p == 1.0
    assert permutation(np.array([0.1, 0.2]), np.array([0.3, 0.0])).p == 1.0


def test_many_seeds_are_drawn_and_say_so() -> None:
    rng = np.random.default_rng(0)
    differences = rng.normal(0.3, 1, 40)
    flips = sign_flip(differences)
    assert flips.is_drawn
    assert flips.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)
    dealt = permutation(rng.normal(0, 1, 30), rng.normal(0.5, 1, 30))
    assert dealt.is_drawn
    assert dealt.smallest == 1e-5
    assert sign_flip(differences) == flips


def test_drawn_and_counted_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    differences, arms = rng.normal(0.4, 1, 12), (rng.normal(0, 1, 7), rng.normal(0.8, 1, 7))
    counted = sign_flip(differences).p, permutation(*arms).p
    monkeypatch.setattr("attnlab.statistics.exact.MAX_ENUMERATED", 1)
    drawn = sign_flip(differences).p, permutation(*arms).p
    for one, other in zip(counted, drawn, strict=True):
        assert other == pytest.approx(one, abs=4 * math.sqrt(one * (1 - one) / 99_999))


def test_the_level_is_kept() -> None:
    rng = np.random.default_rng(5)
    ps = [sign_flip(rng.standard_normal(8)).p for _ in range(2000)]
    assert np.mean(np.array(ps) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_the_exact_interval_holds_what_the_exact_test_does_not_reject() -> None:
    differences = np.random.default_rng(0).normal(1.0, 1.0, 9)
    for alpha in (0.05, 0.2):
        low, high = sign_flip_interval(differences, alpha)
        for end, outward in ((low, -1), (high, 1)):
            assert sign_flip(differences - end - outward * 1e-6).p <= alpha
            assert sign_flip(differences - end + outward * 1e-6).p > alpha
    assert sign_flip_interval(differences[:5]) == (-math.inf, math.inf)


def test_drawn_intervals_are_near_t() -> None:
    differences = np.random.default_rng(0).normal(0.5, 1.0, 40)
    assert sign_flip_interval(differences) == pytest.approx(paired_t(differences).interval(), abs=0.05)
