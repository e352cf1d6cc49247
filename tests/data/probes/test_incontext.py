"""MAD's recall: a key has one value in a row, every key that stood before is asked for it, noise never is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.probes import IGNORED, FuzzyRecall, InContextRecall, NoisyRecall


@given(st.integers(4, 40), st.integers(2, 40), st.integers(0, 2**31))
def test_known_keys_are_asked_for_their_value(vocab: int, pairs: int, number: int) -> None:
    (ids,), (labels,) = InContextRecall(vocab=vocab, length=2 * pairs).batch(number, "dev")
    told: dict[int, int] = {}
    for key, value, label in zip(ids[0::2].tolist(), ids[1::2].tolist(), labels[0::2].tolist(), strict=True):
        assert key < vocab // 2 <= value < vocab
        assert label == (value if key in told else IGNORED)
        assert told.setdefault(key, value) == value
    assert labels[-2] != IGNORED  # the last key stood before
    assert (labels[1::2] == IGNORED).all()


@given(st.floats(0, 0.95), st.integers(2, 30), st.integers(0, 2**31))
def test_noise_is_neither_asked_nor_told(noise: float, pairs: int, number: int) -> None:
    (ids,), (labels,) = NoisyRecall(noise=noise, length=2 * pairs).batch(number, "dev")
    told: dict[int, int] = {}
    for key, value, label in zip(ids[0::2].tolist(), ids[1::2].tolist(), labels[0::2].tolist(), strict=True):
        if key >= 16:
            assert value >= 16
            assert label == IGNORED
        else:
            assert label == (value if key in told else IGNORED)
            assert told.setdefault(key, value) == value
    assert labels[-2] != IGNORED


def test_as_many_pairs_are_noise_as_were_asked_for() -> None:
    ids, _ = NoisyRecall(noise=0.4).batch(np.arange(500), "dev")
    # Two of the 64 pairs are never noise.
    assert (ids[:, 0::2] >= 16).mean() == pytest.approx(0.4 * 62 / 64, abs=0.01)


@pytest.mark.parametrize("kind", [InContextRecall, NoisyRecall, FuzzyRecall])
def test_training_rows_ask_for_every_next_token(kind: type[InContextRecall]) -> None:
    ids, labels = kind().batch(np.arange(5), "train")
    assert (labels[:, :-1] == ids[:, 1:]).all()
    assert (labels[:, -1] == IGNORED).all()


@given(st.integers(1, 3), st.integers(8, 20), st.integers(13, 90), st.integers(0, 2**31))
def test_fuzzy_keys_have_one_value_each_and_the_last_was_told(motif: int, vocab: int, length: int, number: int) -> None:
    probe = FuzzyRecall(vocab=vocab, length=length, motif=motif)
    (ids,), (labels,) = probe.batch(number, "dev")
    row = ids.tolist()
    text = row[next(at for at, token in enumerate(row) if token != vocab - 1) :]
    offset, at = length - len(text), 0
    told: dict[tuple[int, ...], tuple[int, ...]] = {}
    while at < len(text):
        key = tuple(text[at : at + motif])
        assert len(set(key)) == motif
        assert all(token < probe.num_keys for token in key)
        at += motif
        start = at
        while at < len(text) and text[at] >= probe.num_keys:
            at += 1
        value = tuple(text[start:at])
        assert 1 <= len(set(value)) == len(value) <= motif
        asked = labels[offset + start - 1 : offset + at - 1].tolist()
        assert asked == (list(value) if key in told else [IGNORED] * len(value))
        last = key in told
        assert told.setdefault(key, value) == value
    assert last


def test_fuzzy_training_keys_are_of_every_size() -> None:
    ids, _ = FuzzyRecall().batch(np.arange(200), "train")
    is_key = ids < FuzzyRecall().num_keys
    starts = is_key & ~np.pad(is_key[:, :-1], ((0, 0), (1, 0)))
    sizes = {int(row[at:].argmin()) for row, begin in zip(is_key, starts, strict=True) for at in np.flatnonzero(begin)}
    assert {1, 2, 3} <= sizes
