"""Classification of a text or a pair of texts as a task, and the regression of a number, which differs in its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.data import Source
from attnlab.errors import TaskError

from ..batch import Batch, Feature, pad
from ..floors import best_constant_class
from ..frame import Frame
from ..metrics import classes, correlation
from ..objective import answered, check_finite, logits_of, with_penalty
from ..reading import column_of, located
from ..scores import Reference, Scores
from .labels import BINARY, Labels, Range
from .text import Columns, LabelledText, check_labelled, clusters_of

METRICS: Mapping[str, Callable[[object, object], float]] = {
    "accuracy": classes.accuracy,
    "f1": classes.f1,
    "matthews": classes.matthews,
    "pearson": correlation.pearson,
    "spearman": correlation.spearman,
}


@dataclass(frozen=True)
class Classification:
    """Choose the class of a text; with a `Range` of labels, predict a number."""

    name: str
    columns: Columns
    labels: Labels | Range = BINARY
    metrics: tuple[str, ...] = ("accuracy",)
    """The figures, the one that decides first."""
    max_len: int = 128
    splits: tuple[tuple[str, str], ...] = ()
    """Splits that have a name of their own, such as MNLI's dev_matched."""
    head: str = "AutoModelForSequenceClassification"
    higher_is_better: bool = True

    @property
    def primary(self) -> str:
        """The figure that decides."""
        return self.metrics[0]

    @property
    def ceiling(self) -> float:
        """Every label right: 1 for every figure of classes and every correlation."""
        return 1.0

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best constant answer on the texts to evaluate on; a constant has no correlation."""
        if isinstance(self.labels, Range):
            return Reference(0.0, "always the same number")
        gold = np.array([one.label for one in dev.examples], dtype=np.int64)
        return best_constant_class(METRICS[self.primary], gold, self.labels.names)

    @property
    def is_regression(self) -> bool:
        """Whether the label is a number rather than a class."""
        return isinstance(self.labels, Range)

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """A logit for each class, or one number."""
        if isinstance(self.labels, Range):
            return {"num_labels": 1, "problem_type": "regression"}
        return {"num_labels": len(self.labels.names), "problem_type": "single_label_classification"}

    def with_labels_of(self, source: str | Path | Source, split: str | None = None) -> Classification:
        """Return this task with the classes that occur in a file."""
        opened = self.columns.open(source, split)
        values = [row[column_of(row, self.columns.label, place)] for place, row in located(opened)]
        return replace(self, labels=Labels.found(value for value in values if str(value) not in self.columns.skipped))

    def examples(self, source: str | Path | Source, split: str | None = None) -> list[LabelledText]:
        """Read labelled texts."""
        return self.columns.read(self.columns.open(*self._located(source, split)), self.labels)

    def _located(self, source: str | Path | Source, split: str | None) -> tuple[str | Path | Source, str | None]:
        """Find a split that has a name of its own: a file of a folder, or a split of the hub."""
        own = dict(self.splits).get(split or "")
        if own is None or isinstance(source, Source):
            return source, split
        if str(source).startswith("hf:"):
            return source, own.replace("dev", "validation")
        files = sorted(Path(source).glob(f"{own}.*"))
        return (files[0], None) if files else (source, split)

    def features(self, examples: Sequence[LabelledText], tokenizer: Any) -> list[Feature]:
        """Encode each text, or pair, cut to `max_len` tokens, the longer of a pair first."""
        frame = Frame.of(tokenizer)
        has_pair = bool(self.columns.pair)
        encoded = tokenizer(
            [one.text for one in examples],
            [one.pair for one in examples] if has_pair else None,
            truncation="longest_first",
            max_length=self.max_len - frame.num_added(has_pair),
            padding=False,
        )
        features = []
        for number, (one, encoding) in enumerate(zip(examples, encoded.encodings, strict=True)):
            targets = {} if one.label is None else {"labels": one.label}
            inputs = frame.put_around(encoding).inputs
            features.append(Feature(one.id, number, inputs, targets, frame.padding))
        return features

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch of texts."""
        return pad(features)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the cross-entropy, or the mean squared error of a number."""
        if "labels" not in batch:
            raise TaskError("this batch has no labels, and a loss needs them; train on a split that has some")
        check_pad_token(model, batch)
        logits = logits_of(model, batch)
        check_width(logits, self.head_settings["num_labels"])
        labels = batch["labels"].to(logits.device)
        if self.is_regression:
            return with_penalty(model, F.mse_loss(logits.squeeze(-1).float(), labels.float()))
        return with_penalty(model, F.cross_entropy(logits.float(), labels))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many texts there are."""
        return len(batch["input_ids"])

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, int | float]:
        """Return the class number of every text, or the number predicted."""
        predictions: dict[str, int | float] = {}
        for batch, output in answered(model, _checked(model, batches)):
            check_width(output.logits, self.head_settings["num_labels"])
            keys = [feature.key for feature in batch.features]
            check_finite(output.logits, keys)
            chosen = output.logits.squeeze(-1) if self.is_regression else output.logits.argmax(-1)
            predictions.update(zip(keys, chosen.cpu().tolist(), strict=True))
        return predictions

    def score(self, predictions: Mapping[str, int | float | str], examples: Sequence[LabelledText]) -> Scores:
        """Return the task's figures, with the majority rate and whether one class is all that is predicted."""
        check_labelled(examples)
        check_complete(predictions, examples)
        kind = float if self.is_regression else int
        gold = np.array([one.label for one in examples], dtype=kind)
        read = self.labels.read
        given = np.array([read(predictions[one.id], one.place, "prediction") for one in examples], dtype=kind)
        figures = {name: METRICS[name](gold, given) for name in self.metrics}
        if isinstance(self.labels, Range):
            errors = {"squared_error": (gold - given) ** 2.0}
            return Scores(self.name, self.primary, figures, [one.id for one in examples], errors, ceiling=self.ceiling)
        single = {"accuracy": (gold == given).astype(np.float64)}
        collapse = classes.collapse(gold, given, self.labels.names)
        ids, clusters = [one.id for one in examples], clusters_of(examples)
        return Scores(self.name, self.primary, figures, ids, single, collapse, clusters=clusters, ceiling=self.ceiling)


def _checked(model: nn.Module, batches: Iterable[Batch]) -> Iterable[Batch]:
    for batch in batches:
        check_pad_token(model, batch)
        yield batch


def check_complete(predictions: Mapping[str, object], examples: Sequence[LabelledText]) -> None:
    """Refuse to score with predictions missing, or for rows that are not there."""
    missing = [one for one in examples if one.id not in predictions]
    if missing:
        raise TaskError(
            f"{missing[0].place}: there is no prediction for '{missing[0].id}', one of {len(missing)} missing of "
            f"{len(examples)}; every row needs one"
        )
    if len(predictions) > len(examples):
        known = {one.id for one in examples}
        unknown = [key for key in predictions if key not in known]
        raise TaskError(
            f"there is a prediction for '{unknown[0]}', one of {len(unknown)} that no row has as its id; do they "
            "belong to other data?"
        )


def check_width(logits: Tensor, num_labels: int) -> None:
    """Refuse a head of another size."""
    if logits.shape[-1] != num_labels:
        raise TaskError(
            f"the model's head gives {logits.shape[-1]} logits where the task has {num_labels}; build it with "
            f"num_labels={num_labels}"
        )


def check_pad_token(model: nn.Module, batch: Mapping[str, Tensor]) -> None:
    """Refuse a model that finds the last token by its pad token, and has none or another one."""
    if not hasattr(model, "score") or "attention_mask" not in batch:
        return
    padded = batch["input_ids"][batch["attention_mask"] == 0]
    pad_token = getattr(getattr(model, "config", None), "pad_token_id", None)
    if padded.numel() and pad_token != int(padded[0]):
        raise TaskError(
            f"{type(model).__name__} reads the last token before padding, but its pad token is {pad_token} and the "
            f"batch is padded with {int(padded[0])}; set model.config.pad_token_id = {int(padded[0])}"
        )
