"""Batches are padded on the right and keep their features."""

from typing import Any

import pytest
import torch

from attnlab.errors import TaskError
from attnlab.tasks.batch import BatchPadding, Feature, as_tokens, pad

from .tokenizers import byte_level, wordpiece


def feature(*ids: int, label: Any = 1) -> Feature:
    return Feature("k", 0, {"input_ids": as_tokens(ids)}, {"labels": label}, BatchPadding(9))


def test_shorter_rows_are_filled_on_the_right() -> None:
    batch = pad([feature(1, 2, 3), feature(4)])
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["labels"].tolist() == [1, 1]
    assert pad([feature(1, label=0.5)])["labels"].dtype == torch.float32
    assert pad([feature(1, label=as_tokens([1])), feature(1, label=as_tokens([2, 3]))])["labels"].tolist() == [
        [1, -100],
        [2, 3],
    ]


def test_a_batch_keeps_its_features_on_any_device() -> None:
    rows = [feature(1, 2), feature(3)]
    assert pad(rows).to("cpu").features == tuple(rows)
    with pytest.raises(TaskError, match="at least one feature"):
        pad([])


def test_padding_is_the_pad_token_or_the_end_token() -> None:
    assert BatchPadding.of(wordpiece()).token == wordpiece().pad_token_id
    assert BatchPadding.of(byte_level()).token == byte_level().eos_token_id


class Neither:
    pad_token_id = None
    eos_token_id = None


def test_a_tokenizer_that_cannot_pad_is_refused() -> None:
    with pytest.raises(TaskError, match="Neither has neither a pad token nor an end token"):
        BatchPadding.of(Neither())
