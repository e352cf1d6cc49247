"""Selective averaging asks for the mean of the marked numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.probes import Averaging


@given(st.integers(1, 9), st.integers(0, 2**31))
def test_averaging_asks_for_the_mean_of_the_marked(marked: int, number: int) -> None:
    probe = Averaging(length=10, marked=marked)
    (ids,), (labels,) = probe.batch(number)
    chosen = ids[ids > probe.levels] - probe.levels
    assert chosen.size == marked
    assert abs(labels[-1] - chosen.mean()) <= 0.5
