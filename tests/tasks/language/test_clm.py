"""Causal language modelling: figures by their definitions, and the leak-free perplexity, which shows a leak."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab
from attnlab.errors import TaskError
from attnlab.tasks import load
from attnlab.tasks.language import Clm
from attnlab.tasks.language.line import make_lines

from ..models import batches, build
from ..tokenizers import SENTENCES, byte_level

LINES = make_lines([SENTENCES[0], SENTENCES[1][:40], SENTENCES[2][:30]])


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


@pytest.mark.parametrize("settings", [{}, {"has_start": False}, {"has_end": False}, {"max_len": 9}])
def test_the_bytes_of_a_line_are_counted_once(settings: dict[str, Any]) -> None:
    tokenizer = byte_level()
    for line in LINES:
        features = load("clm", **settings).features([line], tokenizer)
        first = tokenizer(line.text).char_to_token(0) if settings.get("has_start") is False else None
        unpredicted = 0 if first is None else len(line.text[: tokenizer(line.text).token_to_chars(0).end].encode())
        assert sum(feature.num_bytes for feature in features) == len(line.text.encode()) - unpredicted


def test_bits_per_byte_of_a_line_that_is_cut_are_over_what_is_predicted() -> None:
    """Cutting a line of 400 like words must not make it look four times as predictable."""
    tokenizer = byte_level()
    line = make_lines([" ".join(["Denver"] * 400)])
    figures = []
    for text in (line, make_lines([line[0].text[: len("Denver ") * 100]])):
        task = load("clm", max_len=150, is_cut=True)
        model = build("gpt2", task, tokenizer)
        (feature,) = task.features(text, tokenizer)
        shown = tokenizer.decode(feature.inputs["input_ids"][1:], skip_special_tokens=True)
        assert feature.num_bytes == len(shown.encode())
        scores = task.score(task.predict(model, [task.collate([feature])]), text)
        nats = scores.figures["loss"] * (len(feature) - 1)
        assert scores.figures["bits_per_byte"] == pytest.approx(nats / math.log(2) / len(shown.encode()))
        figures.append(scores.figures["bits_per_byte"])
    assert figures[0] == pytest.approx(figures[1], rel=0.05)


def test_lines_that_leave_nothing_to_predict_get_no_block() -> None:
    task = load("clm", has_start=False, has_end=False)
    lines = make_lines(["a", SENTENCES[0], "b"])
    features = task.features(lines, byte_level())
    assert {feature.key for feature in features} == {"1"}


def test_scores_of_documents_have_the_figure_as_their_mean() -> None:
    task, tokenizer = load("clm", has_leak_free_perplexity=True), byte_level()
    model = build("gpt2", task, tokenizer)
    lines = make_lines([SENTENCES[0], SENTENCES[1][:12]])
    scores = task.score(task.predict(model, batches(task, task.features(lines, tokenizer))), lines)
    assert scores.of_examples("loss").mean() == pytest.approx(math.log(scores.figures["perplexity"]))
    leak_free = scores.figures["leak_free_perplexity"]
    assert scores.of_examples("leak_free_loss").mean() == pytest.approx(math.log(leak_free))
    assert scores.of_examples("loss").tolist() != pytest.approx(scores.of_examples("line_loss").tolist())


def test_lines_of_one_article_are_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "wiki.txt"
    path.write_text(" = Mill = \n\n It is old . \n = = Wheel = = \n It turns . \n = Ada = \n She wrote . \n", "utf-8")
    task, tokenizer = load("clm"), byte_level()
    lines = task.examples(path)
    model = build("gpt2", task, tokenizer)
    scores = task.score(task.predict(model, batches(task, task.features(lines, tokenizer))), lines)
    assert scores.clusters == ["Mill"] * 4 + ["Ada"] * 2
    assert scores.num_clusters == 2
    plain = tmp_path / "plain.txt"
    plain.write_text("It is old.\nIt turns.\n", "utf-8")
    assert [line.cluster for line in task.examples(plain)] == [None, None]


def test_start_and_end_can_be_left_out() -> None:
    tokenizer = byte_level()
    (plain,) = load("clm", has_start=False, has_end=False).features(LINES[:1], tokenizer)
    assert plain.inputs["input_ids"].tolist() == tokenizer(LINES[0].text)["input_ids"]
    with pytest.raises(TaskError, match=r"text 1: 'a' is 1 token, which leaves none to predict"):
        load("clm", has_start=False, has_end=False).features(make_lines(["a"]), tokenizer)


@pytest.mark.parametrize(("line", "leaks"), [("dot | softmax", False), ("dot | softmax | mask(after)", True)])
def test_leak_free_perplexity_exposes_a_mechanism_that_sees_the_future(line: str, leaks: bool) -> None:
    task = load("clm", has_leak_free_perplexity=True)
    model = attnlab.install(build("gpt2", task, byte_level()).double(), line)
    figures = scored(task, model)
    if leaks:
        assert abs(math.log(figures["leak_free_perplexity"] / figures["perplexity"])) > 1e-3
    else:
        assert figures["leak_free_perplexity"] == pytest.approx(figures["perplexity"], rel=1e-9)


def test_leak_free_perplexity_does_not_depend_on_the_batches() -> None:
    task, tokenizer = load("clm", has_leak_free_perplexity=True), byte_level()
    model = attnlab.install(build("gpt2", task, tokenizer).double(), "dot | softmax | mask(after)")
    features = task.features(LINES, tokenizer)
    together = task.predict(model, batches(task, features))
    for part in batches(task, features, size=1):
        ((key, (_, loss)),) = task.predict(model, [part]).items()
        assert loss.nats == pytest.approx(together[key][1].nats, rel=1e-9)


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


def test_lines_are_read_and_all_must_be_predicted(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("One line.\n\nAnother.\n", encoding="utf-8")
    lines = load("clm").examples(path)
    assert [line.text for line in lines] == ["One line.", "Another."]
    with pytest.raises(TaskError, match=r"text.txt, document 1: no prediction"):
        load("clm").score({}, lines)
