"""Batches are padded on the right, keep their features, and token types reach only models that have them."""

from typing import Any

import pytest
import torch

from attnlab.errors import TaskError
from attnlab.tasks import Batch, load
from attnlab.tasks.batch import BatchPadding, Feature, as_tokens, pad
from attnlab.tasks.labelled import compute_mean_loss
from attnlab.tasks.objective import forward

from .models import batches, build
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


def test_gpt2_never_gets_token_types_which_it_would_look_up_among_its_words() -> None:
    model = build("gpt2", load("clm"), byte_level())
    ids = torch.tensor([[5, 6, 7]])
    batch = {"input_ids": ids, "token_type_ids": torch.ones_like(ids)}
    assert torch.equal(forward(model, batch).logits, model(ids).logits)
    bert = build("bert", load("mlm"), wordpiece())
    assert torch.equal(forward(bert, batch).logits, bert(ids, token_type_ids=torch.ones_like(ids)).logits)


def test_asking_leaves_a_model_in_its_mode() -> None:
    task, tokenizer = load("sst2"), wordpiece()
    model = build("bert", task, tokenizer).train()
    texts = load("boolq").examples("embedded:boolq", "dev")[:2]
    task.predict(model, batches(task, task.features(texts, tokenizer)))
    assert model.training


def test_batches_of_unknown_origin_and_batches_without_labels_are_refused() -> None:
    task = load("sst2")
    with pytest.raises(TaskError, match=r"batches from task.collate"):
        task.predict(build("bert", task, wordpiece()), [Batch({"input_ids": torch.tensor([[5]])})])
    with pytest.raises(TaskError, match="no position of this batch has a label"):
        compute_mean_loss(build("gpt2", load("clm")), {"input_ids": torch.ones(1, 2).long()}, torch.full((1, 2), -100))
