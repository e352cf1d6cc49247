"""Causal language modelling: figures by their definitions, and prefix-honesty, which shows a leak."""

import math
from pathlib import Path

import pytest
import torch

import attnlab
from attnlab.errors import TaskError
from attnlab.tasks import load, sample, sentence_losses
from attnlab.tasks.language import Clm
from attnlab.tasks.language.line import lines_of

from ..models import batches, build
from ..tokenizers import SENTENCES, byte_level, wordpiece

LINES = lines_of([SENTENCES[0], SENTENCES[1][:40], SENTENCES[2][:30]])


def scored(task: Clm, model: torch.nn.Module) -> dict[str, float]:
    parts = batches(task, task.features(LINES, byte_level()))
    return dict(task.score(task.predict(model, parts), LINES).figures)


def test_figures_are_those_of_the_definition() -> None:
    task, tokenizer = load("clm"), byte_level()
    model = build("gpt2", task, tokenizer)
    nats, counts = [], []
    for line in LINES:
        end = tokenizer.eos_token_id
        ids = torch.tensor([[end, *tokenizer(line.text)["input_ids"], end]])
        nats.append(model(ids, labels=ids).loss.item() * (ids.numel() - 1))
        counts.append(ids.numel() - 1)
    num_bytes = sum(len(line.text.encode()) for line in LINES)
    figures = scored(task, model)
    assert figures["loss"] == pytest.approx(sum(nats) / sum(counts), rel=1e-5)
    assert figures["perplexity"] == pytest.approx(math.exp(sum(nats) / sum(counts)), rel=1e-4)
    by_line = [math.exp(loss / count) for loss, count in zip(nats, counts, strict=True)]
    assert figures["line_perplexity"] == pytest.approx(sum(by_line) / 3, rel=1e-4)
    assert figures["bits_per_byte"] == pytest.approx(sum(nats) / math.log(2) / num_bytes, rel=1e-5)


def test_each_token_of_a_long_line_is_predicted_once() -> None:
    task, tokenizer = load("clm", max_len=16), byte_level()
    features = task.features(LINES[:1], tokenizer)
    whole = load("clm").features(LINES[:1], tokenizer)[0].inputs["input_ids"]
    assert len(features) > 2
    said = [token for feature in features for token in feature.inputs["input_ids"][1:]]
    assert said == list(whole[1:])


def test_a_line_can_be_cut() -> None:
    (feature,) = load("clm", max_len=16, is_cut=True).features(LINES[:1], byte_level())
    (whole,) = load("clm").features(LINES[:1], byte_level())
    assert feature.inputs["input_ids"].tolist() == whole.inputs["input_ids"][:16].tolist()


def test_start_and_end_can_be_left_out() -> None:
    tokenizer = byte_level()
    (plain,) = load("clm", has_start=False, has_end=False).features(LINES[:1], tokenizer)
    assert plain.inputs["input_ids"].tolist() == tokenizer(LINES[0].text)["input_ids"]
    with pytest.raises(TaskError, match=r"text 1: 'a' is 1 token, which leaves none to predict"):
        load("clm", has_start=False, has_end=False).features(lines_of(["a"]), tokenizer)


@pytest.mark.parametrize(("line", "leaks"), [("dot | softmax", False), ("dot | softmax | mask(after)", True)])
def test_prefix_honesty_exposes_a_mechanism_that_sees_the_future(line: str, leaks: bool) -> None:
    task = load("clm", is_honest=True)
    model = attnlab.install(build("gpt2", task, byte_level()).double(), line)
    figures = scored(task, model)
    if leaks:
        assert abs(math.log(figures["honest_perplexity"] / figures["perplexity"])) > 1e-3
    else:
        assert figures["honest_perplexity"] == pytest.approx(figures["perplexity"], rel=1e-9)


def test_a_penalty_is_part_of_the_loss_while_training_alone() -> None:
    task, tokenizer = load("clm"), byte_level()
    model = build("gpt2", task, tokenizer)
    batch = task.collate(task.features(LINES, tokenizer))
    plain = task.loss(model, batch).item()
    attnlab.install(model, "dot | softmax | penalize(output, 0.5)")
    assert task.loss(model.eval(), batch).item() == pytest.approx(plain, rel=1e-5)
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert task.loss(model, batch).item() > plain + 1e-4


def test_sentences_have_their_own_loss() -> None:
    task, tokenizer = load("clm"), byte_level()
    model = build("gpt2", task, tokenizer)
    losses = sentence_losses(model, tokenizer, [line.text for line in LINES])
    single = task.score(task.predict(model, batches(task, task.features(LINES, tokenizer))), LINES)
    assert [loss.per_token for loss in losses] == pytest.approx(single.of_examples("line_loss").tolist(), rel=1e-5)
    honest = sentence_losses(model, tokenizer, [LINES[1].text], load("clm", is_honest=True))
    assert honest[0].nats == pytest.approx(losses[1].nats, rel=1e-4)


def test_samples_are_seeded_and_follow_temperature_and_top_k() -> None:
    tokenizer = byte_level()
    model = build("gpt2", load("clm"), tokenizer)
    drawn = sample(model, tokenizer, "The Denver", num_tokens=8, seed=3)
    assert drawn.startswith("The Denver")
    assert drawn == sample(model, tokenizer, "The Denver", num_tokens=8, seed=3)
    assert len({sample(model, tokenizer, num_tokens=6, seed=seed) for seed in range(4)}) > 1
    greedy = sample(model, tokenizer, "The", num_tokens=6, temperature=0)
    assert greedy == sample(model, tokenizer, "The", num_tokens=6, top_k=1, seed=9)
    with pytest.raises(TaskError, match="temperature is 0 or more"):
        sample(model, tokenizer, temperature=-1)
    with pytest.raises(TaskError, match="top_k is 1 or more"):
        sample(model, tokenizer, top_k=0)
    with pytest.raises(TaskError, match="give a prompt"):
        sample(model, wordpiece())


def test_lines_are_read_and_all_must_be_predicted(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("One line.\n\nAnother.\n", encoding="utf-8")
    lines = load("clm").examples(path)
    assert [line.text for line in lines] == ["One line.", "Another."]
    with pytest.raises(TaskError, match=r"text.txt, document 1: no prediction"):
        load("clm").score({}, lines)
