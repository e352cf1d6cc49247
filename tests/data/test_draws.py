"""Draws are the same in every version, do not depend on each other, and have the distribution they should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.draws import (
    draw_distinct,
    draw_integers,
    draw_permutations,
    draw_uniform,
    draw_weighted,
    draw_words,
    keys_of,
    mix,
    name_key,
)  # fmt: skip

KEYS = keys_of(7, np.arange(20_000))


def test_draws_never_change_between_versions() -> None:
    # Batches, masks, probes and initial weights of finished runs depend on these.
    assert int(mix(np.zeros((), dtype=np.uint64))) == 0xE220A8397B1DCDAF  # the first output of SplitMix64 for seed 0
    assert int(keys_of(3, -4)) == 214328100811586106
    assert name_key("order") == 1145212715145292606
    assert draw_integers(keys_of(1, [2, 3]), 4, 100).tolist() == [[44, 86, 28, 76], [24, 36, 95, 4]]


def test_keys_broadcast_and_depend_on_every_part_and_its_place() -> None:
    table = keys_of(5, np.arange(3)[:, None], np.arange(4))
    assert table.shape == (3, 4)
    assert int(table[2, 1]) == int(keys_of(5, 2, 1)) != int(keys_of(5, 1, 2))
    assert len(np.unique(table)) == 12


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 30))
def test_a_longer_draw_begins_with_the_shorter_one(seed: int, count: int) -> None:
    key = np.atleast_1d(keys_of(seed))
    assert (draw_words(key, count + 5)[:, :count] == draw_words(key, count)).all()


def test_uniform_numbers_are_uniform() -> None:
    numbers = draw_uniform(KEYS, 3)
    assert 0 <= numbers.min() < numbers.max() < 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)
    assert np.abs(np.corrcoef(numbers.T) - np.eye(3)).max() < 0.03


@given(st.integers(0, 2**40), st.integers(1, 12), st.integers(0, 1000))
def test_distinct_integers_are_distinct_and_below_the_bound(seed: int, count: int, more: int) -> None:
    numbers = draw_distinct(keys_of(seed, np.arange(5)), count, count + more)
    assert numbers.shape == (5, count)
    assert 0 <= numbers.min() <= numbers.max() < count + more
    assert all(len(set(row)) == count for row in numbers.tolist())


def test_distinct_integers_and_permutations_are_uniform_at_every_place() -> None:
    for numbers in (draw_distinct(KEYS, 3, 5), draw_permutations(KEYS, 5)):
        for place in range(numbers.shape[1]):
            assert np.bincount(numbers[:, place], minlength=5) / len(KEYS) == pytest.approx(0.2, abs=0.015)


def test_weights_are_the_probabilities_of_the_first_draw() -> None:
    weights = np.array([1.0, 2.0, 7.0])
    drawn = draw_weighted(KEYS, 2, weights)
    assert np.bincount(drawn[:, 0]) / len(KEYS) == pytest.approx(weights / 10, abs=0.015)
    assert (drawn[:, 0] != drawn[:, 1]).all()
