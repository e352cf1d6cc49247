"""MQAR has what zoology's generator guarantees: its vocabularies, its places, its power law, its filler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.probes import IGNORED, Recall


@given(st.integers(1, 8), st.integers(20, 9000), st.integers(16, 40), st.integers(0, 1), st.integers(0, 2**31))
def test_each_key_is_asked_once_for_its_value(pairs: int, vocab: int, half: int, filler: int, number: int) -> None:
    length = 2 * half
    probe = Recall(vocab=vocab, length=length, pairs=pairs, filler=filler)
    (ids,), (labels,) = probe.batch(number)
    told = dict(zip(ids[0 : 2 * pairs : 2].tolist(), ids[1 : 2 * pairs : 2].tolist(), strict=True))
    places = np.flatnonzero(labels != IGNORED)
    assert len(told) == len(set(told.values())) == len(places) == pairs
    assert all(1 <= key < vocab // 2 for key in told)
    assert all(vocab // 2 <= value < vocab for value in told.values())
    assert places.min() >= 2 * pairs
    assert (places % 2 == 0).all()
    assert {int(ids[place]): int(labels[place]) for place in places} == told
    if not filler:
        empty = np.setdiff1d(np.arange(2 * pairs, length), places)
        assert (ids[empty] == 0).all()


def test_filler_is_of_the_whole_vocabulary() -> None:
    probe = Recall(vocab=64, length=64, pairs=4)
    ids, labels = probe.batch(np.arange(2000))
    filler = ids[:, 8:][labels[:, 8:] == IGNORED]
    shares = np.bincount(filler, minlength=64) / filler.size
    assert abs(shares - 1 / 64).max() < 0.003


@pytest.mark.parametrize("power", [0.01, 1.0])
def test_the_first_query_is_placed_by_the_power_law(power: float) -> None:
    """zoology draws the first key's slot i of 28 with a chance of i^(power − 1), the others without replacement."""
    probe = Recall(vocab=512, length=64, pairs=4, power=power)
    ids, labels = probe.batch(np.arange(20000))
    rows, places = np.nonzero((ids[:, 8:] == ids[:, :1]) & (labels[:, 8:] != IGNORED))
    assert len(rows) == 20000
    weights = np.arange(1, 29) ** (power - 1)
    expected = weights / weights.sum()
    shares = np.bincount(places // 2, minlength=28) / 20000
    assert abs(shares - expected).max() < 4 * np.sqrt(expected.max() / 20000)


def test_later_queries_are_placed_without_replacement() -> None:
    """The law of the second slot given the first is the same one among the slots that are left."""
    probe = Recall(vocab=512, length=16, pairs=2)
    ids, labels = probe.batch(np.arange(20000))
    asked = labels[:, 4:] != IGNORED
    slots = [((ids[:, 4:] == ids[:, [2 * key]]) & asked).argmax(axis=1) // 2 for key in (0, 1)]
    weights = np.arange(1, 7) ** -0.99
    for first in range(6):
        left = np.where(np.arange(6) == first, 0, weights)
        second = slots[1][slots[0] == first]
        shares = np.bincount(second, minlength=6) / len(second)
        assert abs(shares - left / left.sum()).max() < 4 * 0.5 / np.sqrt(len(second))
