"""Compression is read from one state: nothing else of a sequence reaches the head, and a tiny model can learn it."""

import torch

from attnlab.tasks import load

from ..models import batches, build


def test_only_the_last_state_reaches_the_head() -> None:
    task = load("compression", vocab=6, length=5)
    model = build("gpt2", task)
    assert model.score.out_features == 4 * 6
    batch = task.collate(task.features(task.examples()[:3]))
    states = model.transformer(batch["input_ids"]).last_hidden_state[:, -1]
    logits = model.score(states).unflatten(-1, (4, 6))
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, :-1].flatten())
    assert torch.allclose(task.loss(model, batch), expected)


def test_a_tiny_model_learns_to_compress() -> None:
    torch.manual_seed(0)
    task = load("compression", vocab=4, length=4)
    model = build("gpt2", task).train()
    features = task.features(task.examples(split="train"))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(100):
        start = step * 32 % 960
        loss = task.loss(model, task.collate(features[start : start + 32]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    examples = task.examples(split="dev")[:100]
    scores = task.score(task.predict(model, batches(task, task.features(examples), 50)), examples)
    assert scores.value > 0.9
