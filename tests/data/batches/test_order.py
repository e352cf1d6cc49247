"""The order is a permutation each epoch, another each time, the same everywhere, and looked up anywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from attnlab.data import Order
from attnlab.errors import DataError


@given(st.integers(1, 3000), st.integers(-(2**40), 2**40), st.integers(0, 10**6))
def test_every_example_comes_once_an_epoch(num_examples: int, seed: int, epoch: int) -> None:
    found = Order(num_examples, seed).at(epoch, np.arange(num_examples))
    assert sorted(found.tolist()) == list(range(num_examples))


@given(st.integers(1, 10**15), st.integers(0, 100), st.data())
def test_a_look_up_alone_is_the_look_up_among_others(num_examples: int, epoch: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, num_examples - 1), min_size=1, max_size=20))
    order = Order(num_examples, 7)
    together = order.at(epoch, places)
    assert together.tolist() == [int(order.at(epoch, place)) for place in places]
    assert 0 <= together.min() <= together.max() < num_examples


def test_epochs_and_seeds_differ() -> None:
    places = np.arange(1000)
    first = Order(1000, 0).at(0, places)
    assert (first != Order(1000, 0).at(1, places)).mean() > 0.99
    assert (first != Order(1000, 1).at(0, places)).mean() > 0.99


def test_the_order_never_changes_between_versions() -> None:
    # A study that is resumed under a later attnlab must go on with the same batches.
    assert Order(1000, 42).at(3, np.arange(8)).tolist() == FIXED


FIXED = [402, 820, 220, 692, 226, 237, 768, 143]


@pytest.mark.parametrize("num_examples", [2, 3, 4, 5])
def test_all_orders_of_a_few_are_equally_likely(num_examples: int) -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(3000):
        found = tuple(Order(num_examples, seed).at(0, np.arange(num_examples)).tolist())
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == math.factorial(num_examples)
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_every_place_is_equally_likely_for_every_example() -> None:
    counts = np.zeros((60, 60))
    for seed in range(3000):
        counts[np.arange(60), Order(60, seed).at(seed % 5, np.arange(60))] += 1
    assert chisquare(counts.ravel()).pvalue > 1e-4


def test_neighbours_are_parted() -> None:
    found = Order(100_000, 0).at(0, np.arange(100_000))
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02
    assert (np.diff(found) == 1).sum() < 20


def test_a_place_outside_the_epoch_is_refused() -> None:
    with pytest.raises(DataError, match="run from 0 to 9; got 10 to 10"):
        Order(10).at(0, 10)
    with pytest.raises(DataError, match="at least one example"):
        Order(0)
