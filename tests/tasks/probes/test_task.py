"""Probes: labels are not shifted, accuracy is over labelled positions, and a model can learn one."""

import math
from pathlib import Path

import pytest
import torch

from attnlab.data import open_source
from attnlab.errors import TaskError
from attnlab.tasks import load

from ..models import batches, build


def test_accuracy_counts_labelled_positions_alone() -> None:
    task = load("copy", vocab=8, length=9)
    model = build("gpt2", task)
    examples = task.examples()[:20]
    batch = task.collate(task.features(examples))
    scores = task.score(task.predict(model, [batch]), examples)
    asked = batch["labels"] != -100
    with torch.no_grad():
        right = (model(batch["input_ids"]).logits.argmax(-1) == batch["labels"])[asked]
    assert scores.value == pytest.approx(right.float().mean().item())
    assert scores.of_examples("accuracy").mean() == pytest.approx(scores.value)


def test_a_tiny_model_learns_to_copy_and_nothing_learns_chance() -> None:
    torch.manual_seed(0)
    for name, is_learnable in (("copy", True), ("iid", False)):
        task = load(name, vocab=6, length=5)
        model = build("gpt2", task)
        features = task.features(task.examples(split="train"))
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
        model.train()
        for step in range(60):
            loss = task.loss(model, task.collate(features[step * 16 : step * 16 + 16]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        examples = task.examples(split="dev")[:100]
        scores = task.score(task.predict(model, batches(task, task.features(examples), 50)), examples)
        if is_learnable:
            assert scores.value > 0.9
        else:
            assert scores.figures["loss"] > math.log(6) - 0.1


def test_sequences_with_more_questions_count_for_more() -> None:
    task = load("induction", vocab=8, length=9)
    model = build("gpt2", task)
    examples = task.examples()[:30]
    scores = task.score(task.predict(model, batches(task, task.features(examples), 10)), examples)
    for figure in ("accuracy", "loss"):
        assert scores.of_examples(figure).mean() == pytest.approx(scores.figures[figure])


def test_fresh_rows_are_those_of_a_generator_alone(tmp_path: Path) -> None:
    task = load("mqar")
    probe = task.get_generator(open_source("embedded:mqar?pairs=2", split="train"))
    (feature,) = task.generate_features(probe, 10**12, "train")
    ids, labels = probe.batch(10**12, "train")
    assert feature.inputs["input_ids"].tolist() == ids[0].tolist()
    assert feature.targets["labels"].tolist() == labels[0].tolist()
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input_ids": [1, 2], "labels": [-100, 1]}\n', encoding="utf-8")
    with pytest.raises(TaskError, match=r"fresh rows must be generated, and .* use 'embedded:mqar', or omit is_fresh"):
        task.get_generator(open_source(path))


def test_sequences_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TaskError, match=r'row 1: token \d+ is not below the vocabulary of 8; use load\("mqar", vocab='):
        load("mqar", vocab=8).examples("embedded:mqar?vocab=64")
    task = load("induction")
    with pytest.raises(TaskError, match="row 1: no prediction"):
        task.score({}, task.examples()[:1])
