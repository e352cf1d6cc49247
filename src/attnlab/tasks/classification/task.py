"""Classification of a text or a pair of texts, and regression, which differs in its loss."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.data import Source
from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from ..batch import Batch, Feature, PaddedTask
from ..floors import choose_best
from ..frame import Frame
from ..metrics import classes, correlation
from ..objective import add_penalty, check_batches, check_finite, compute_logits, evaluation_mode
from ..reading import find_column, read_rows
from ..scores import Reference, Scores, find_clusters
from .labels import BINARY, Labels, Range
from .text import Columns, LabelledText, check_labelled

METRICS: Mapping[str, Callable[[object, object], float]] = {
    "accuracy": classes.accuracy,
    "f1": classes.f1,
    "matthews": classes.matthews,
    "pearson": correlation.pearson,
    "spearman": correlation.spearman,
}


@dataclass(frozen=True)
class Classification(PaddedTask):
    """Choose the class of a text; with a `Range` of labels, predict a number."""

    name: str
    columns: Columns
    labels: Labels | Range = BINARY
    metrics: tuple[str, ...] = ("accuracy",)
    """The figures, the primary one first."""
    max_len: int = 128
    splits: tuple[tuple[str, str], ...] = ()
    """Splits with names of their own, such as MNLI's dev_matched."""
    head: str = "AutoModelForSequenceClassification"
    higher_is_better: bool = True
    ceiling: ClassVar[float] = 1.0

    @property
    def primary(self) -> str:
        """The figure that decides."""
        return self.metrics[0]

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best constant prediction on the evaluation texts; the correlation of a constant is 0."""
        if isinstance(self.labels, Range):
            return Reference(0.0, "always the same number")
        gold = np.array([text.label for text in dev.examples], dtype=np.int64)
        metric, names = METRICS[self.primary], self.labels.names
        values = {f"always '{name}'": metric(gold, np.full(gold.shape, at)) for at, name in enumerate(names)}
        return choose_best(values, higher_is_better=True)

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

    def with_labels_of(self, source: str | Path | Source, split: str | None = None) -> Self:
        """Return this task with the classes that occur in a file."""
        opened = self.columns.open(source, split)
        values = [row[find_column(row, self.columns.label, place)] for place, row in read_rows(opened)]
        return replace(self, labels=Labels.collect(value for value in values if str(value) not in self.columns.skipped))

    def examples(self, source: str | Path | Source, split: str | None = None) -> list[LabelledText]:
        """Read labelled texts."""
        return self.columns.read(self.columns.open(*self._find_split(source, split)), self.labels)

    def list_texts(self, source: str | Path | Source) -> list[str] | None:
        """Return both texts of every pair, on which a new tokenizer is trained; None if examples are single texts."""
        if not self.columns.pair:
            return None
        return [text for example in self.examples(source) for text in (example.text, example.pair) if text]

    def _find_split(self, source: str | Path | Source, split: str | None) -> tuple[str | Path | Source, str | None]:
        """Replace a split with a name of its own by its file in a folder or its name on the hub."""
        split_name = dict(self.splits).get(split or "")
        if split_name is None or isinstance(source, Source):
            return source, split
        if str(source).startswith("hf:"):
            return source, split_name.replace("dev", "validation")
        files = sorted(Path(source).glob(f"{split_name}.*"))
        return (files[0], None) if files else (source, split)

    def find_special_tokens(self, tokenizer: Any) -> SpecialTokens:
        """Return the special tokens of a single text."""
        return Frame.of(tokenizer).find_special_tokens(tokenizer)

    def features(self, examples: Sequence[LabelledText], tokenizer: Any) -> list[Feature]:
        """Encode each text, or pair, cut to `max_len` tokens, the longer of a pair first."""
        frame = Frame.of(tokenizer)
        has_pair = bool(self.columns.pair)
        texts, pairs = [text.text for text in examples], [text.pair for text in examples] if has_pair else None
        max_length = self.max_len - frame.num_added(has_pair)
        encoded = tokenizer(texts, pairs, truncation="longest_first", max_length=max_length)
        features = []
        for number, (text, encoding) in enumerate(zip(examples, encoded.encodings, strict=True)):
            targets = {} if text.label is None else {"labels": text.label}
            features.append(Feature(text.id, number, frame.complete(encoding).inputs, targets, frame.padding))
        return features

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the cross-entropy, or the mean squared error of a number."""
        if "labels" not in batch:
            raise TaskError("this batch has no labels, and a loss needs them; train on a split that has some")
        _check_pad_token(model, batch)
        logits = compute_logits(model, batch)
        self._check_width(logits)
        labels = batch["labels"].to(logits.device)
        if self.is_regression:
            return add_penalty(model, F.mse_loss(logits.squeeze(-1).float(), labels.float()))
        return add_penalty(model, F.cross_entropy(logits.float(), labels))

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, int | float]:
        """Return the class number of every text, or the number predicted."""
        predictions: dict[str, int | float] = {}
        for batch in check_batches(batches):
            _check_pad_token(model, batch)
            with evaluation_mode(model):
                logits = compute_logits(model, batch)
            self._check_width(logits)
            keys = [feature.key for feature in batch.features]
            check_finite(logits, keys)
            chosen = logits.squeeze(-1) if self.is_regression else logits.argmax(-1)
            predictions.update(zip(keys, chosen.cpu().tolist(), strict=True))
        return predictions

    def score(self, predictions: Mapping[str, int | float | str], examples: Sequence[LabelledText]) -> Scores:
        """Return the task's figures, the majority rate, and whether a single class is predicted."""
        check_labelled(examples)
        _check_complete(predictions, examples)
        kind = float if self.is_regression else int
        ids = [text.id for text in examples]
        gold = np.array([text.label for text in examples], dtype=kind)
        read = self.labels.read
        given = np.array([read(predictions[text.id], text.place, "prediction") for text in examples], dtype=kind)
        figures = {name: METRICS[name](gold, given) for name in self.metrics}
        if isinstance(self.labels, Range):
            errors = {"squared_error": (gold - given) ** 2.0}
            return Scores(self.name, self.primary, figures, ids, errors, ceiling=self.ceiling)
        single = {"accuracy": (gold == given).astype(np.float64)}
        collapse = classes.collapse(gold, given, self.labels.names)
        clusters = find_clusters(examples)
        return Scores(self.name, self.primary, figures, ids, single, collapse, clusters=clusters, ceiling=self.ceiling)

    def _check_width(self, logits: Tensor) -> None:
        num_labels = self.head_settings["num_labels"]
        if logits.shape[-1] != num_labels:
            raise TaskError(
                f"the model's head gives {logits.shape[-1]} logits where the task has {num_labels}; build it with "
                f"num_labels={num_labels}"
            )


def _check_complete(predictions: Mapping[str, object], examples: Sequence[LabelledText]) -> None:
    missing = [text for text in examples if text.id not in predictions]
    if missing:
        raise TaskError(
            f"{missing[0].place}: there is no prediction for '{missing[0].id}', one of {len(missing)} missing of "
            f"{len(examples)}; every row needs one"
        )
    if len(predictions) > len(examples):
        known = {text.id for text in examples}
        unknown = [key for key in predictions if key not in known]
        raise TaskError(
            f"there is a prediction for '{unknown[0]}', one of {len(unknown)} that no row has as its id; do they "
            "belong to other data?"
        )


def _check_pad_token(model: nn.Module, batch: Mapping[str, Tensor]) -> None:
    """Raise an error if a model that finds the last token by its pad token has another pad token than the batch."""
    if not hasattr(model, "score") or "attention_mask" not in batch:
        return
    padded = batch["input_ids"][batch["attention_mask"] == 0]
    pad_token = getattr(getattr(model, "config", None), "pad_token_id", None)
    if padded.numel() and pad_token != int(padded[0]):
        raise TaskError(
            f"{type(model).__name__} reads the last token before padding, but its pad token is {pad_token} and the "
            f"batch is padded with {int(padded[0])}; set model.config.pad_token_id = {int(padded[0])}"
        )
