"""Induction labels every repetition with what followed the token last time, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.probes import IGNORED, Induction


@given(st.integers(4, 200), st.integers(3, 40), st.integers(0, 2**31))
def test_every_repetition_is_asked(vocab: int, length: int, number: int) -> None:
    (ids,), (labels,) = Induction(vocab=vocab, length=length).batch(number)
    row = ids.tolist()
    for place, token in enumerate(row):
        before = [at for at in range(place) if row[at] == token]
        assert labels[place] == (row[before[-1] + 1] if before else IGNORED)
    assert labels[-1] != IGNORED
