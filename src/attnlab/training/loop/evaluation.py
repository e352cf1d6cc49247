"""Evaluation of a model on held-out examples, in fp32 and identical for every seed and arm."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import nn

from attnlab.tasks import Scores
from attnlab.tasks.batch import Batch

from ..job.job import Examples

EVALUATION_SEED = 0
"""Masks the same tokens in every evaluation, whatever the seed of the run."""


class EvaluationStoppedError(Exception):
    """A stop was requested during an evaluation."""


def make_batches(task: Any, dev: Examples, is_stopped: Callable[[], bool]) -> Iterator[Batch]:
    """Yield batches of features of similar length, to reduce padding."""
    by_length = sorted(dev.features, key=len)
    for start in range(0, len(by_length), dev.batch):
        if is_stopped():
            raise EvaluationStoppedError
        yield task.collate(by_length[start : start + dev.batch], seed=EVALUATION_SEED)


def evaluate(
    model: nn.Module, task: Any, dev: Examples, is_stopped: Callable[[], bool] = bool
) -> tuple[Scores, dict[str, Any]]:
    """Return the scores of a model, and its predictions."""
    predictions = task.predict(model, make_batches(task, dev, is_stopped))
    return task.score(predictions, dev.examples), predictions


def make_record(scores: Scores, predictions: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures, scores of single examples, and predictions that are texts or numbers, as plain data."""
    plain = {key: getattr(value, "text", value) for key, value in predictions.items()}
    is_plain = all(isinstance(value, str | int | float) for value in plain.values())
    return {
        **scores.record(),
        "ids": list(scores.ids),
        "clusters": None if scores.clusters is None else list(scores.clusters),
        "per_example": {name: values.tolist() for name, values in scores.per_example.items()},
        "predictions": plain if is_plain else None,
    }
