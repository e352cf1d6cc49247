"""State tracking: the label of a position is the state after all tokens up to it."""

from __future__ import annotations

import itertools

import numpy as np

from attnlab.data.probes import Parity, Permutations
from attnlab.data.probes.tracking import multiply_permutations


def test_parity_is_that_of_the_ones_so_far() -> None:
    ids, labels = Parity(length=30).batch(np.arange(20))
    for row, states in zip(ids.tolist(), labels.tolist(), strict=True):
        assert states == [sum(row[: at + 1]) % 2 for at in range(30)]


def test_permutations_are_multiplied_one_after_another() -> None:
    every = list(itertools.permutations(range(5)))
    ids, labels = Permutations(length=12).batch(np.arange(20))
    for row, states in zip(ids.tolist(), labels.tolist(), strict=True):
        things = tuple(range(5))
        for token, state in zip(row, states, strict=True):
            things = tuple(every[token][thing] for thing in things)
            assert every[state] == things


def test_the_products_form_a_group_that_is_not_commutative() -> None:
    table = multiply_permutations()
    assert table.shape == (120, 120)
    assert (np.sort(table, axis=0) == np.arange(120)[:, None]).all()
    assert (np.sort(table, axis=1) == np.arange(120)).all()
    assert (table[0] == np.arange(120)).all()
    assert (table != table.T).any()
