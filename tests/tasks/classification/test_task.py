"""Classification from texts to figures, for encoders and decoders, classes and numbers."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from attnlab.errors import TaskError
from attnlab.tasks import LabelledText, load

from ..models import batches, build
from ..tokenizers import KINDS, SENTENCES, byte_level, wordpiece

PAIRED = [
    LabelledText(str(number), SENTENCES[number % 4], SENTENCES[(number + 1) % 3], number % 2, f"dev.tsv, row {number}")
    for number in range(8)
]


@pytest.mark.parametrize(("kind", "model"), [("wordpiece", "bert"), ("byte level", "gpt2")])
@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_a_model_is_trained_asked_and_scored(kind: str, model: str, name: str) -> None:
    task, tokenizer = load(name), KINDS[kind]()
    asked = build(model, task, tokenizer)
    features = task.features(PAIRED, tokenizer)
    predictions = task.predict(asked, batches(task, features))
    # GPT-2 must read the same last token whatever is padded behind it.
    alone = task.predict(asked, batches(task, features, 1))
    assert predictions == pytest.approx(alone, abs=1e-4)
    scores = task.score(predictions, PAIRED)
    assert set(scores.figures) == ({"accuracy"} if name == "rte" else {"pearson", "spearman"})
    loss = task.loss(asked.train(), batches(task, features)[0])
    loss.backward()
    assert loss.isfinite()


def test_the_loss_is_the_models_own() -> None:
    tokenizer = wordpiece()
    for name in ("rte", "stsb"):
        task = load(name)
        model = build("bert", task, tokenizer)
        batch = task.collate(task.features(PAIRED, tokenizer))
        labels = batch["labels"].float() if name == "stsb" else batch["labels"]
        assert task.loss(model, batch).item() == pytest.approx(model(**{**batch, "labels": labels}).loss.item())


@pytest.mark.parametrize("kind", KINDS)
def test_long_pairs_are_cut_to_the_length_with_both_texts_left(kind: str) -> None:
    task, tokenizer = load("rte", max_len=24), KINDS[kind]()
    for feature in task.features(PAIRED, tokenizer):
        assert len(feature.inputs["input_ids"]) == 24
    # The pair is told apart by marks, also where the tokenizer itself puts none.
    (feature,) = task.features([LabelledText("0", "a", "b", 0, "")], tokenizer)
    marks = {"wordpiece": 3, "byte level": 2}[kind]
    assert len(feature.inputs["input_ids"]) == 2 + marks


def test_figures_are_those_of_the_definition() -> None:
    gold = [0, 0, 1, 1, 1, 0, 1, 0]
    said = [0, 1, 1, 1, 0, 0, 1, 0]
    texts = [LabelledText(str(i), "x", "y", label, f"row {i}") for i, label in enumerate(gold)]
    given = {str(i): label for i, label in enumerate(said)}
    assert load("mrpc").score(given, texts).figures == {"f1": 0.75, "accuracy": 0.75}
    assert load("cola").score(given, texts).figures == {"matthews": 0.5, "accuracy": 0.75}
    scores = load("sst2").score(given, texts)
    assert scores.of_examples("accuracy").tolist() == [1, 0, 1, 1, 0, 1, 1, 1]
    assert scores.collapse is not None
    assert not scores.collapse.is_one_class
    assert scores.collapse.majority_rate == 0.5


def test_numbers_are_correlated_as_by_scipy() -> None:
    gold, said = np.linspace(0, 5, 9), np.array([0.1, 0.3, 0.2, 3, 2, 5.5, 4, 4, 6])
    texts = [LabelledText(str(i), "x", "y", float(label), f"row {i}") for i, label in enumerate(gold)]
    scores = load("stsb").score({str(i): float(one) for i, one in enumerate(said)}, texts)
    assert scores.figures["pearson"] == stats.pearsonr(gold, said).statistic
    assert scores.figures["spearman"] == stats.spearmanr(gold, said).statistic
    assert scores.of_examples("squared_error") == pytest.approx((gold - said) ** 2)


def test_one_class_everywhere_is_said_to_be_collapse() -> None:
    texts = [LabelledText(str(i), "q", "p", int(i < 62), f"row {i}") for i in range(100)]
    scores = load("boolq").score(dict.fromkeys(map(str, range(100)), "true"), texts)
    assert scores.value == 0.62
    assert scores.collapse is not None
    assert scores.collapse.is_one_class
    assert "COLLAPSED" in scores.collapse.sentence
    record: Any = scores.record()
    assert record["collapse"]["majority_rate"] == 0.62
    assert record["collapse"]["majority_label"] == "true"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"0": 1}, "row 1: there is no prediction for '1', one of 1 missing of 2"),
        ({"0": 1, "1": float("nan")}, "row 1: the prediction is NaN"),
        ({"0": 1, "1": "maybe"}, "row 1: the prediction is 'maybe'"),
        ({"0": 1, "1": 0, "7": 0}, "a prediction for '7', one of 1 that no row has"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    texts = [LabelledText(str(i), "x", None, i, f"row {i}") for i in range(2)]
    with pytest.raises(TaskError, match=message):
        load("sst2").score(given, texts)


def test_a_test_set_without_labels_is_predicted_but_not_scored() -> None:
    task, tokenizer = load("sst2"), wordpiece()
    texts = [LabelledText("0", "fine", None, None, "test.tsv, row 1")]
    model, (batch,) = build("bert", task, tokenizer), batches(task, task.features(texts, tokenizer))
    predictions = task.predict(model, [batch])
    with pytest.raises(TaskError, match=r"test.tsv, row 1: there is no label"):
        task.score(predictions, texts)
    with pytest.raises(TaskError, match="no labels"):
        task.loss(model, batch)


def test_models_that_do_not_fit_are_refused() -> None:
    task, tokenizer = load("rte"), wordpiece()
    parts = batches(task, task.features(PAIRED, tokenizer))
    with pytest.raises(TaskError, match="3 logits where the task has 2; build it with num_labels=2"):
        task.predict(build("bert", load("mnli"), tokenizer), parts)
    broken = build("bert", task, tokenizer)
    with torch.no_grad():
        broken.classifier.bias.fill_(float("nan"))
    with pytest.raises(TaskError, match="answers example '0' with NaN"):
        task.predict(broken, parts)
    decoder = build("gpt2", task, byte_level())
    decoder.config.pad_token_id = None
    with pytest.raises(TaskError, match=r"set model.config.pad_token_id = 0"):
        task.predict(decoder, batches(task, task.features(PAIRED, byte_level())))
