"""SQuAD from questions to figures: a random model runs, the oracle is right, training brings answers nearer."""

import pytest
import torch

from attnlab.errors import TaskError
from attnlab.tasks import load

from ..models import batches, build
from ..tokenizers import KINDS, wordpiece
from .questions import many, question

kinds = pytest.mark.parametrize("kind", KINDS)
SMALL = {"max_len": 64, "stride": 24}


@pytest.mark.parametrize(("kind", "model"), [("wordpiece", "bert"), ("byte level", "gpt2")])
def test_a_model_is_trained_asked_and_scored(kind: str, model: str) -> None:
    task, questions, tokenizer = load("squad", **SMALL), many(6), KINDS[kind]()
    asked = build(model, task, tokenizer)
    features = task.features(questions, tokenizer)
    parts = batches(task, features, 4)
    predictions = task.predict(asked, parts)
    assert set(predictions) == {one.id for one in questions}
    # The order of windows, and how they are batched, is of no account.
    again = task.predict(asked, batches(task, features[::-1], 7))
    assert {key: answer.text for key, answer in again.items()} == {key: one.text for key, one in predictions.items()}
    scores = task.score(predictions, questions)
    assert scores.of_examples("exact").mean() == pytest.approx(scores.figures["exact_match"])
    assert scores.of_examples("f1").mean() == pytest.approx(scores.value)
    loss = task.loss(asked.train(), parts[0])
    loss.backward()
    assert loss.item() > 0


def test_the_loss_is_the_models_own() -> None:
    task, tokenizer = load("squad", **SMALL), wordpiece()
    model = build("bert", task, tokenizer)
    (batch, *_) = batches(task, task.features(many(4), tokenizer))
    own = model(**batch).loss
    assert task.loss(model, batch).item() == pytest.approx(own.item(), rel=1e-6)


def test_the_loss_does_not_depend_on_padding() -> None:
    task, tokenizer = load("squad", **SMALL), wordpiece()
    model = build("bert", task, tokenizer)
    batch = task.collate(task.features([question("Denver Broncos")], tokenizer)[:1])
    wide = {
        name: torch.nn.functional.pad(tensor, (0, 9)) if tensor.dim() == 2 else tensor for name, tensor in batch.items()
    }
    torch.testing.assert_close(task.loss(model, wide), task.loss(model, batch))


def test_a_model_without_the_head_or_with_nan_is_refused() -> None:
    task, tokenizer = load("squad", **SMALL), wordpiece()
    parts = batches(task, task.features(many(2), tokenizer))
    with pytest.raises(TaskError, match="AutoModelForQuestionAnswering"):
        task.predict(build("bert", load("mlm"), tokenizer), parts)
    broken = build("bert", task, tokenizer)
    with torch.no_grad():
        broken.qa_outputs.weight.fill_(float("nan"))
    with pytest.raises(TaskError, match="answers example 'q0' with NaN"):
        task.predict(broken, parts)


def test_v1_reports_missing_predictions_and_v2_refuses_them() -> None:
    questions = many(4)
    task = load("squad")
    given = {one.id: one.answers[0] for one in questions[:3]}
    scores = task.score(given, questions)
    assert scores.figures["exact_match"] == 75.0
    assert scores.missing == ["q3"]
    assert scores.record()["missing"] == ["q3"]
    with pytest.raises(TaskError, match="1 of 4 questions have no prediction, the first is 'q3'"):
        load("squad_v2").score(given, questions)
    with pytest.raises(TaskError, match=r"'other', is for one of the 4 questions.*belong to other data"):
        task.score({"other": "x"}, questions)


def test_questions_of_one_article_are_a_cluster() -> None:
    task = load("squad")
    questions = task.examples("embedded:squad?articles=3&unanswerable=0", "dev")
    scores = task.score({one.id: "x" for one in questions}, questions)
    assert scores.clusters == [one.title for one in questions]
    assert 1 < scores.num_clusters < len({one.context for one in questions})
    untitled = [question("Denver Broncos", key="a"), question("Carolina", key="b"), question("the", "the end", key="c")]
    assert task.score({"a": "x"}, untitled).num_clusters == 2
