"""A model gets the inputs it accepts and keeps its mode; outputs that are not finite name their example."""

import pytest
import torch

from attnlab.errors import TaskError
from attnlab.tasks import Batch, load
from attnlab.tasks.labelled import compute_mean_loss
from attnlab.tasks.objective import NotFiniteError, check_finite, compute_token_losses, forward

from .models import batches, build
from .tokenizers import byte_level, wordpiece


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


def test_positions_without_a_label_have_no_loss() -> None:
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1, -100, 4], [-100, 0, -100]])
    losses = compute_token_losses(logits, labels)
    expected = -logits.double().log_softmax(-1)
    assert losses.dtype == torch.float64
    assert losses[0, 2].item() == pytest.approx(expected[0, 2, 4].item())
    assert losses[labels == -100].tolist() == [0.0, 0.0, 0.0]


def test_an_example_without_a_finite_answer_is_named() -> None:
    check_finite(torch.ones(2, 3), ["a", "b"])
    with pytest.raises(NotFiniteError, match="example 'b' with NaN or infinity, one of 1"):
        check_finite(torch.tensor([[1.0, 2.0], [3.0, float("nan")]]), ["a", "b"])
