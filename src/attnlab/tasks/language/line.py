"""A line of text as an example of language modelling, its loss, and the sums and floors of many lines."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from attnlab.data import Source
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, Feature
from ..floors import Ids, NgramCounts, choose_best, compute_ngram_losses
from ..labelled import LabelledTask, compute_label_losses
from ..objective import check_batches, check_finite
from ..reading import get_source
from ..scores import Reference


@dataclass(frozen=True, slots=True)
class TextLine:
    """One text, by its number in the source; blank lines are not examples."""

    id: str
    text: str
    place: str
    cluster: str | None = None
    """The article of the line, if its source marks articles."""


@dataclass(frozen=True, slots=True)
class LineLoss:
    """The sum of −log p over the predicted tokens of a line, and how many of these were right."""

    nats: float = 0.0
    num_tokens: int = 0
    num_right: int = 0
    num_bytes: int = 0
    """The UTF-8 bytes of the text of these tokens."""

    def __add__(self, other: Self) -> Self:
        num_tokens, num_right = self.num_tokens + other.num_tokens, self.num_right + other.num_right
        return type(self)(self.nats + other.nats, num_tokens, num_right, self.num_bytes + other.num_bytes)

    @property
    def per_token(self) -> float:
        """The mean loss of a token."""
        return self.nats / self.num_tokens

    @property
    def perplexity(self) -> float:
        """The exponential of the mean loss of a token; infinity on overflow."""
        try:
            return math.exp(self.per_token)
        except OverflowError:
            return math.inf


GROUP_TOKENS = 2**13
"""Tokens of the features whose second losses are computed together: short prefixes alone make passes that are mostly
overhead."""

LineLosses = tuple[LineLoss, LineLoss | None]
"""The loss of a line, and its pseudo-loss or leak-free loss if the task asks for it."""


def make_lines(texts: Sequence[str]) -> list[TextLine]:
    """Make examples of given texts."""
    return [TextLine(str(number), text, f"text {number + 1}") for number, text in enumerate(texts)]


class LanguageTask(LabelledTask):
    """What masked and causal language modelling have in common: lines of text, each with one or two losses."""

    ceiling: ClassVar[float | None] = None
    """The entropy of text is not known."""
    head_settings: ClassVar[Mapping[str, Any]] = {}

    def examples(self, source: str | Path | Source, split: str | None = None) -> list[TextLine]:
        """Read the lines of a text: lines of a text file, or the text column of a table."""
        source = get_source(source, split)
        return [
            TextLine(str(number), text, f"{source.name}, document {number + 1}", article)
            for number, (text, article) in enumerate(source.documents_of_articles())
        ]

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, LineLosses]:
        """Return the losses of each line."""
        losses: defaultdict[str, LineLoss] = defaultdict(LineLoss)
        others: defaultdict[str, LineLoss] = defaultdict(LineLoss)
        features: list[Feature] = []
        for batch in check_batches(batches):
            for feature, loss in zip(batch.features, self.compute_losses(model, batch), strict=True):
                losses[feature.key] += loss
            features += batch.features
        for group in group_features(features, GROUP_TOKENS):
            for feature, loss in zip(group, self.compute_others(model, group), strict=False):
                others[feature.key] += loss
        return {key: (loss, others.get(key)) for key, loss in losses.items()}

    def compute_losses(self, model: nn.Module, batch: Batch) -> list[LineLoss]:
        """Return the loss of each row of a batch."""
        return sum_rows(batch, *compute_label_losses(model, batch, self.get_labels(batch)))

    def compute_others(self, model: nn.Module, features: Sequence[Feature]) -> list[LineLoss]:
        """Return the second loss of each feature, empty if the task does not ask for it."""
        raise NotImplementedError


def group_features(features: Iterable[Feature], num_tokens: int) -> Iterator[list[Feature]]:
    """Yield successive features together until they have so many tokens."""
    group: list[Feature] = []
    for feature in features:
        group.append(feature)
        if sum(map(len, group)) >= num_tokens:
            yield group
            group = []
    if group:
        yield group


def sum_rows(batch: Batch, nats: Tensor, is_right: Tensor) -> list[LineLoss]:
    """Sum the losses of each row of a batch over its labels; NaN or infinity is an error."""
    check_finite(nats, [feature.key for feature in batch.features])
    counts = (batch["labels"].cpu() != IGNORED).sum(1)
    return [LineLoss(float(nats[row].sum()), int(n), int(is_right[row].sum())) for row, n in enumerate(counts)]


def sum_losses(losses: Mapping[str, LineLoss], lines: Sequence[TextLine]) -> LineLoss:
    """Add the losses of lines; raise an error if a line has none."""
    if not lines:
        raise TaskError("there is no line to score; give a text with at least one")
    missing = next((line for line in lines if line.id not in losses), None)
    if missing is not None:
        raise TaskError(f"{missing.place}: no prediction for '{missing.id}'; every line needs one")
    total = sum((losses[line.id] for line in lines), LineLoss())
    if total.num_tokens == 0:
        raise TaskError("no token of these lines was predicted, so there is no loss to take the mean of")
    return total


def score_ngrams(task: Any, dev: Any, counts: NgramCounts, parts: Sequence[tuple[Ids, Ids]]) -> Reference | None:
    """Score unigram and bigram as a task scores a model and return the better; parts are (left, predicted) tokens."""
    if not counts.num_tokens:
        return None
    values: dict[str, float] = {}
    for strategy, nats in compute_ngram_losses(counts, parts).items():
        losses: defaultdict[str, LineLoss] = defaultdict(LineLoss)
        for feature, loss, (_, tokens) in zip(dev.features, nats, parts, strict=True):
            losses[feature.key] += LineLoss(loss, len(tokens), 0, getattr(feature, "num_bytes", 0))
        values[strategy] = task.score({key: (loss, loss) for key, loss in losses.items()}, dev.examples).value
    return choose_best(values, higher_is_better=False)
