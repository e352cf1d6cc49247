"""Each probe asks what it says: the label follows from the tokens, and is a function of the row's number alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data import PROBES, make_probe, open_source
from attnlab.data.probes import IGNORED, Averaging, Copy, Induction, Recall
from attnlab.errors import DataError


@pytest.mark.parametrize("name", PROBES)
def test_a_row_does_not_depend_on_the_batch_it_is_made_in(name: str) -> None:
    probe = make_probe(name)
    together, _ = probe.batch([5, 0, 10**12])
    for row, number in zip(together, (5, 0, 10**12), strict=True):
        assert (probe.batch(number)[0][0] == row).all()


@pytest.mark.parametrize("name", PROBES)
def test_tokens_and_labels_are_in_the_vocabulary_and_something_is_asked(name: str) -> None:
    ids, labels = make_probe(f"embedded:{name}?vocab=17&length=25").batch(np.arange(50))
    assert ids.shape == labels.shape == (50, 25)
    assert 0 <= ids.min() <= ids.max() < 17
    asked = labels != IGNORED
    assert asked.any(axis=1).all()
    assert 0 <= labels[asked].min() <= labels[asked].max() < 17


@given(st.integers(1, 8), st.integers(17, 80), st.integers(24, 60), st.integers(0, 2**31))
def test_recall_asks_each_key_once_for_its_value(pairs: int, vocab: int, length: int, number: int) -> None:
    (ids,), (labels,) = Recall(vocab=vocab, length=length, pairs=pairs).batch(number)
    told = dict(zip(ids[0 : 2 * pairs : 2].tolist(), ids[1 : 2 * pairs : 2].tolist(), strict=True))
    places = np.flatnonzero(labels != IGNORED)
    assert len(told) == len(places) == pairs
    assert places.min() >= 2 * pairs
    assert {int(ids[place]): int(labels[place]) for place in places} == told


def test_copy_asks_for_the_tokens_in_order() -> None:
    (ids,), (labels,) = Copy(length=12).batch(3)
    assert labels[labels != IGNORED].tolist() == ids[:5].tolist()
    assert (ids[labels != IGNORED] == 0).all()


@given(st.integers(4, 30), st.integers(3, 40), st.integers(0, 2**31))
def test_induction_asks_for_what_followed_the_last_token(vocab: int, length: int, number: int) -> None:
    (ids,), (labels,) = Induction(vocab=vocab, length=length).batch(number)
    before = np.flatnonzero(ids[:-1] == ids[-1])
    assert before.size == 1
    assert labels[-1] == ids[before[0] + 1]
    assert (labels[:-1] == IGNORED).all()


@given(st.integers(1, 9), st.integers(0, 2**31))
def test_averaging_asks_for_the_mean_of_the_marked(marked: int, number: int) -> None:
    probe = Averaging(length=10, marked=marked)
    (ids,), (labels,) = probe.batch(number)
    chosen = ids[ids > probe.levels] - probe.levels
    assert chosen.size == marked
    assert abs(labels[-1] - chosen.mean()) <= 0.5


def test_independent_tokens_are_uniform_and_labelled_with_the_next() -> None:
    ids, labels = make_probe("iid?vocab=8&length=50").batch(np.arange(400))
    assert (labels[:, :-1] == ids[:, 1:]).all()
    shares = np.bincount(ids.ravel(), minlength=8) / ids.size
    assert abs(shares - 1 / 8).max() < 0.01


def test_a_source_gives_the_same_rows() -> None:
    ids, labels = make_probe("copy?examples=300").batch(np.arange(300), "test")
    rows = list(open_source("embedded:copy?examples=300", split="test").rows())
    assert [row["input_ids"] for row in rows] == ids.tolist()
    assert [row["labels"] for row in rows] == labels.tolist()


def test_what_is_not_a_probe_is_refused() -> None:
    with pytest.raises(DataError, match="'pydoc' is not a probe; there are mqar, copy"):
        make_probe("pydoc")
