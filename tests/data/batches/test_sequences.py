"""Rows hold every token once if packed, begin anywhere if cropped, and one framed document each if padded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.data import BatchPlan, Loader, Sequences, TokenFile, open_source
from attnlab.errors import DataError


@given(length=st.integers(3, 60))
def test_packed_rows_hold_every_token_once_and_in_order(packed: TokenFile, length: int) -> None:
    rows = Sequences(packed, length)
    ids, mask = rows.batch(np.arange(len(rows)))
    assert (ids[:, 0] == packed.vocabulary.prefix).all()
    assert (mask[:-1] == 1).all()
    assert ids[:, 1:][mask[:, 1:] == 1].tolist() == packed.tokens.tolist()
    assert (ids[mask == 0] == packed.vocabulary.pad).all()


def test_rows_of_a_causal_model_begin_as_its_lines_do(packed: TokenFile) -> None:
    rows = Sequences(packed, 16, is_causal=True)
    ids, mask = rows.batch(np.arange(len(rows)))
    assert rows.prefix is packed.tokenizer.bos_token_id is None  # these word pieces have [CLS], and no start token
    assert ids[mask == 1].tolist() == packed.tokens.tolist()
    assert Loader(packed, BatchPlan(16, 4, "clm")).sequences.prefix is None
    assert Loader(packed, BatchPlan(16, 4, "mlm")).sequences.prefix == packed.tokenizer.cls_token_id


@given(length=st.integers(3, 60))
def test_a_crop_begins_at_every_token_that_has_enough_after_it(packed: TokenFile, length: int) -> None:
    crops = Sequences(packed, length, "crops")
    ids, mask = crops.batch([0, 1, len(crops) - 1])
    assert (mask == 1).all()
    for row, start in zip(ids, (0, 1, packed.tokens.size - crops.room), strict=True):
        assert row[1:].tolist() == packed.tokens[start : start + crops.room].tolist()


@settings(max_examples=30)  # each tokenizes all documents once
@given(length=st.integers(4, 200))
def test_padded_rows_are_documents_as_the_tokenizer_frames_them(packed: TokenFile, length: int) -> None:
    rows = Sequences(packed, length, "padded")
    ids, mask = rows.batch(np.arange(len(rows)))
    tokenizer = packed.tokenizer
    texts = list(open_source("embedded:squad?articles=8").documents())
    expected = tokenizer(texts, truncation=True, max_length=length, padding="max_length")
    assert ids.tolist() == expected.input_ids
    assert mask.tolist() == expected.attention_mask
    assert rows.widths(np.arange(len(rows))).tolist() == mask.sum(axis=1).tolist()


def test_rows_that_cannot_be_are_refused(packed: TokenFile) -> None:
    with pytest.raises(DataError, match="leave no room for text"):
        Sequences(packed, 2, "padded")
    with pytest.raises(DataError, match="did you mean 'padded'"):
        Sequences(packed, 8, "paded")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="rows run from 0 to"):
        Sequences(packed, 8).batch([10**6])
