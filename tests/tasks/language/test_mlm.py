"""Masked language modelling: masking by seed and epoch, figures by their definitions, pseudo-perplexity."""

import math

import pytest
import torch

from attnlab.errors import TaskError
from attnlab.tasks import load
from attnlab.tasks.language.line import make_lines

from ..models import batches, build
from ..tokenizers import SENTENCES, byte_level, wordpiece

LINES = make_lines(SENTENCES[:3])


def test_masking_depends_on_seed_epoch_and_number_alone() -> None:
    task, tokenizer = load("mlm"), wordpiece()
    features = task.features(LINES, tokenizer)
    batch = task.collate(features, seed=1, epoch=2)
    alone = task.collate([features[2]], seed=1, epoch=2)
    width = alone["input_ids"].shape[1]
    assert torch.equal(batch["input_ids"][2, :width], alone["input_ids"][0])
    assert torch.equal(batch["labels"][2, :width], alone["labels"][0])
    assert not torch.equal(batch["labels"], task.collate(features, seed=1, epoch=3)["labels"])
    assert not torch.equal(batch["labels"], task.collate(features, seed=2, epoch=2)["labels"])
    special = torch.tensor(tokenizer.all_special_ids)
    assert not torch.isin(batch["labels"], special).any()


def test_figures_are_those_of_the_definition() -> None:
    task, tokenizer = load("mlm"), wordpiece()
    model = build("bert", task, tokenizer)
    batch = task.collate(task.features(LINES, tokenizer))
    scores = task.score(task.predict(model, [batch]), LINES)
    output = model(**batch)
    hidden = batch["labels"] != -100
    right = (output.logits.argmax(-1) == batch["labels"])[hidden].float().mean().item()
    assert scores.value == pytest.approx(output.loss.item(), rel=1e-5)
    assert scores.figures["accuracy"] == pytest.approx(right)
    assert scores.figures["perplexity"] == pytest.approx(math.exp(output.loss.item()), rel=1e-4)
    assert task.loss(model, batch).item() == pytest.approx(output.loss.item(), rel=1e-6)
    assert not scores.higher_is_better


def test_pseudo_perplexity_hides_one_token_at_a_time() -> None:
    task, tokenizer = load("mlm", is_pseudo=True), wordpiece()
    model = build("bert", task, tokenizer)
    lines = LINES[2:]
    features = task.features(lines, tokenizer)
    figures = task.score(task.predict(model, batches(task, features)), lines).figures
    ids = torch.tensor([features[0].inputs["input_ids"].tolist()])
    nats = []
    for place in range(1, ids.shape[1] - 1):
        hidden = ids.clone()
        hidden[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            nats.append(-model(hidden).logits[0, place].log_softmax(-1)[ids[0, place]].item())
    assert figures["pseudo_perplexity"] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-4)


def test_long_lines_become_several_features() -> None:
    task, tokenizer = load("mlm", max_len=16), wordpiece()
    features = task.features(LINES, tokenizer)
    assert len(features) > len(LINES)
    assert [feature.number for feature in features] == list(range(len(features)))
    assert {feature.key for feature in features} == {"0", "1", "2"}


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(TaskError, match="no mask token"):
        load("mlm").features(LINES, byte_level())
    with pytest.raises(TaskError, match="made by the task mlm"):
        load("mlm").collate(load("clm").features(LINES, byte_level()))
