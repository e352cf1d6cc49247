"""A task's figures of a model on examples that it does not train on. In fp32, and the same for every seed and arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import nn

from attnlab.tasks import Scores
from attnlab.tasks.batch import Batch

from ..job.job import Examples

EVALUATION_SEED = 0
"""What is hidden from a masked language model when it is evaluated is the same whatever the run's seed."""


class EvaluationStoppedError(Exception):
    """Somebody asked to stop in the middle of an evaluation."""


def batches_of(task: Any, dev: Examples, is_stopped: Callable[[], bool]) -> Iterator[Batch]:
    """Yield features of like length together, so that there is little padding."""
    by_length = sorted(dev.features, key=len)
    for start in range(0, len(by_length), dev.batch):
        if is_stopped():
            raise EvaluationStoppedError
        yield task.collate(by_length[start : start + dev.batch], seed=EVALUATION_SEED)


def evaluate(
    model: nn.Module, task: Any, dev: Examples, is_stopped: Callable[[], bool] = bool
) -> tuple[Scores, dict[str, Any]]:
    """Return the scores of a model, and its predictions."""
    predictions = task.predict(model, batches_of(task, dev, is_stopped))
    return task.score(predictions, dev.examples), predictions


def as_answers(scores: Scores, predictions: Mapping[str, Any]) -> dict[str, Any]:
    """Return scores of single examples, and predictions where they are a text or a number, as plain data."""
    plain = {key: getattr(value, "text", value) for key, value in predictions.items()}
    answers = {key: value for key, value in plain.items() if isinstance(value, str | int | float)}
    return {
        **scores.record(),
        "ids": list(scores.ids),
        "clusters": None if scores.clusters is None else list(scores.clusters),
        "per_example": {name: values.tolist() for name, values in scores.per_example.items()},
        "predictions": answers if len(answers) == len(plain) else None,
    }
