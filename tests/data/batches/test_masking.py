"""Masking hides 15 % at random, never what is special, and alike wherever an example turns up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data import Masking, TokenFile, Vocabulary, example_keys, mask_tokens, open_source, train_tokenizer
from attnlab.data.batches.masking import IGNORED, find_word_starts
from attnlab.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@pytest.fixture(scope="module")
def vocabulary(word_pieces: PreTrainedTokenizerFast) -> Vocabulary:
    return Vocabulary.of(word_pieces)


def draw_ids(vocabulary: Vocabulary, num_rows: int, length: int, seed: int = 0) -> np.ndarray:
    ids = np.random.default_rng(seed).integers(5, vocabulary.size, (num_rows, length))
    assert vocabulary.prefix is not None
    assert vocabulary.separator is not None
    assert vocabulary.pad is not None
    ids[:, 0] = vocabulary.prefix
    ids[:, -1] = vocabulary.separator
    ids[1::2, length // 2 :] = vocabulary.pad
    return ids


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_those_asked_for(vocabulary: Vocabulary, whole_words: bool) -> None:
    ids = draw_ids(vocabulary, 4000, 100)
    keys = example_keys(0, 0, np.arange(4000))
    out, labels = mask_tokens(ids, vocabulary, keys, Masking(whole_words=whole_words))
    ordinary, hidden = ~vocabulary.special[ids], labels != IGNORED
    assert hidden.sum() / ordinary.sum() == pytest.approx(0.15, abs=0.004)
    assert (out[hidden] == vocabulary.mask).mean() == pytest.approx(0.8, abs=0.01)
    # A random token is the old one by chance, once in the size of the vocabulary.
    assert (out[hidden] == ids[hidden]).mean() == pytest.approx(0.1 + 0.1 / vocabulary.size, abs=0.01)
    assert (out[~hidden] == ids[~hidden]).all()
    assert (labels[hidden] == ids[hidden]).all()


def test_random_tokens_are_uniform_over_ordinary_ones(vocabulary: Vocabulary) -> None:
    ids = draw_ids(vocabulary, 2000, 100)
    out, labels = mask_tokens(ids, vocabulary, example_keys(0, 0, np.arange(2000)), Masking(1.0, 0.0, 1.0))
    drawn = np.bincount(out[labels != IGNORED], minlength=vocabulary.size)
    assert drawn[vocabulary.special].sum() == 0
    assert drawn[~vocabulary.special].min() > 0.7 * drawn.sum() / (vocabulary.size - 5)


@given(st.integers(0, 2**40), st.integers(0, 1000), st.integers(2, 40), st.booleans(), st.floats(0.01, 1))
def test_specials_and_padding_are_never_hidden_and_something_always_is(
    vocabulary: Vocabulary, seed: int, epoch: int, length: int, whole_words: bool, share: float
) -> None:
    ids = draw_ids(vocabulary, 6, length, seed)
    masking = Masking(share, whole_words=whole_words)
    out, labels = mask_tokens(ids, vocabulary, example_keys(seed, epoch, np.arange(6)), masking)
    special = vocabulary.special[ids]
    assert (out[special] == ids[special]).all()
    assert (labels[special] == IGNORED).all()
    assert ((labels != IGNORED).any(axis=1) == (~special).any(axis=1)).all()


@given(st.integers(0, 100), st.integers(0, 100), st.permutations(range(8)))
def test_an_example_is_masked_alike_in_any_batch(
    vocabulary: Vocabulary, seed: int, epoch: int, order: list[int]
) -> None:
    ids = draw_ids(vocabulary, 8, 30)
    whole = mask_tokens(ids, vocabulary, example_keys(seed, epoch, np.arange(8)))
    chosen = np.array(order[:3])
    part = mask_tokens(ids[chosen], vocabulary, example_keys(seed, epoch, chosen))
    for one, other in zip(whole, part, strict=True):
        assert (one[chosen] == other).all()


def test_epochs_mask_anew(vocabulary: Vocabulary) -> None:
    ids = draw_ids(vocabulary, 100, 100)
    first, second = (mask_tokens(ids, vocabulary, example_keys(0, epoch, np.arange(100)))[1] for epoch in (0, 1))
    both = ((first != IGNORED) & (second != IGNORED)).sum() / (first != IGNORED).sum()
    assert both == pytest.approx(0.15, abs=0.03)


def test_whole_words_are_hidden_whole(packed: TokenFile) -> None:
    vocabulary = packed.vocabulary
    ids = np.asarray(packed.tokens[: 64 * 60], dtype=np.int64).reshape(60, 64)
    assert vocabulary.continues is not None
    assert vocabulary.continues[ids].any()
    _, labels = mask_tokens(ids, vocabulary, example_keys(0, 0, np.arange(60)), Masking(whole_words=True))
    starts = find_word_starts(ids, vocabulary)
    hidden = labels != IGNORED
    assert (hidden == np.take_along_axis(hidden, starts, axis=1)).all()


def test_bytes_tell_words_by_their_space() -> None:
    tokenizer = train_tokenizer(["low lower lowest newer wider"] * 5, "bpe", 270)
    vocabulary = Vocabulary.of(tokenizer)
    ids = np.array([tokenizer("lower wider").input_ids])
    starts = find_word_starts(ids, vocabulary)[0].tolist()
    tokens = tokenizer.convert_ids_to_tokens(ids[0])
    words = [tokens[place] for place in dict.fromkeys(starts)]
    assert words[0] == "<s>"
    assert words[-1] == "</s>"
    assert len(words) == 4


def test_what_cannot_be_masked_is_refused(vocabulary: Vocabulary) -> None:
    with pytest.raises(DataError, match="above 0 and at most 1; got 0"):
        Masking(0.0)
    with pytest.raises(DataError, match="at most 1 together"):
        Masking(masked=0.8, random=0.3)
    words = Vocabulary.of(train_tokenizer(open_source("embedded:squad?articles=1"), "word"))
    with pytest.raises(DataError, match="needs a tokenizer with a mask token"):
        mask_tokens(np.array([[5, 6]]), words, example_keys(0, 0, [0]))
