"""Copying asks for the tokens in order, whether the input shows the copy, is blank, or scatters them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.probes import IGNORED, Copy, SelectiveCopying


def test_with_blanks_the_copy_is_not_shown() -> None:
    (ids,), (labels,) = Copy(length=12).batch(3)
    assert labels[labels != IGNORED].tolist() == ids[:5].tolist()
    assert (ids[labels != IGNORED] == 0).all()


def test_without_blanks_each_token_of_the_copy_is_asked_before_it_is_shown() -> None:
    (ids,), (labels,) = Copy(length=12, blanks=0).batch(3)
    assert ids[5] == 1
    assert ids[6:11].tolist() == ids[:5].tolist()
    assert labels[5:10].tolist() == ids[6:11].tolist()
    assert (labels != IGNORED).sum() == 5


@given(st.integers(1, 20), st.integers(0, 40), st.integers(4, 30), st.integers(0, 2**31))
def test_selective_copying_asks_for_what_is_not_blank(copied: int, blanks: int, vocab: int, number: int) -> None:
    length = max(3, 2 * copied + 1 + blanks)
    (ids,), (labels,) = SelectiveCopying(vocab=vocab, length=length, copied=copied).batch(number)
    mark, blank = vocab - 1, vocab - 2
    (place,) = np.flatnonzero(ids == mark)
    assert place == length - copied - 1
    shown = ids[:place]
    assert shown[shown != blank].tolist() == labels[place + 1 :].tolist()
    assert shown[-1] != blank  # every blank stands before a token
    assert (ids[place + 1 :] == blank).all()
    assert (labels[: place + 1] == IGNORED).all()
