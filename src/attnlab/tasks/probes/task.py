"""Probes as tasks: generated sequences with labels at some positions, and how many of these a model gets right.

The label at a position is what the logits at that position should say; nothing is shifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from attnlab.data import PROBES, Probe, Source
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens, pad
from ..floors import best_of, sequence_strategies
from ..labelled import count_labels, label_losses, mean_loss
from ..language.line import LineLoss
from ..objective import asked, check_finite, with_penalty
from ..reading import column_of, located, opened
from ..scores import Reference, Scores, shares_of_mean


@dataclass(frozen=True, slots=True)
class ProbeExample:
    """One generated sequence with its labels, −100 where nothing is asked."""

    id: str
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    place: str


@dataclass(frozen=True)
class ProbeTask:
    """Say the right token wherever one is asked for."""

    name: str
    vocab: int = 64
    length: int = 64
    is_fresh: bool = False
    """Whether every update trains on new rows, generated when they are due, and no row is ever repeated."""
    head: str = "AutoModelForCausalLM"
    primary: str = "accuracy"
    higher_is_better: bool = True

    @property
    def source(self) -> str:
        """The sequences that are generated where no others are given."""
        return f"embedded:{self.name}?vocab={self.vocab}&length={self.length}"

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """The probe's tokens are the model's vocabulary."""
        return {"vocab_size": self.vocab}

    @property
    def ceiling(self) -> float | None:
        """Every answer right; i.i.d. tokens cannot be predicted, so nothing is known to be reached there."""
        return None if self.name == "iid" else 1.0

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best of the trivial strategies on the sequences to evaluate on."""
        if self.primary != "accuracy":
            return None
        sequences = [(one.input_ids, one.labels) for one in dev.examples]
        is_positional = self.name in PROBES and PROBES[self.name].IS_POSITIONAL
        values = sequence_strategies(sequences, train_features, is_positional=is_positional)
        return best_of(values, higher_is_better=True)

    def examples(self, source: str | Path | Source | None = None, split: str | None = None) -> list[ProbeExample]:
        """Generate sequences, or read those of another source of token ids and labels."""
        found = opened(self.source if source is None else source, split)
        return [self._example(number, place, row) for number, (place, row) in enumerate(located(found))]

    def features(self, examples: Sequence[ProbeExample], tokenizer: Any = None) -> list[Feature]:
        """Take the sequences as they are: tokens need no tokenizer."""
        return [self._feature(one.id, number, one.input_ids, one.labels) for number, one in enumerate(examples)]

    def features_of(self, probe: Probe, numbers: ArrayLike, split: str) -> list[Feature]:
        """Generate the rows of these numbers, without a set that they are part of."""
        rows = np.atleast_1d(np.asarray(numbers))
        made = zip(rows.tolist(), *probe.batch(rows, split), strict=True)
        return [self._feature(str(number), number, ids, labels) for number, ids, labels in made]

    def generator(self, source: Source) -> Probe:
        """Return what generates the rows of a source; a file of rows is an error."""
        probe = getattr(source.reader, "made", None)
        if not isinstance(probe, Probe):
            raise TaskError(
                f"fresh rows are generated, and {source.name} is a set of rows that are there; use "
                f"'embedded:{self.name}', or leave is_fresh out"
            )
        return probe

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch of sequences."""
        return pad(features)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss over the positions that are asked."""
        return with_penalty(model, mean_loss(model, batch, batch["labels"]))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many positions are asked."""
        return count_labels(batch["labels"])

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, LineLoss]:
        """Return each sequence's loss, and how many of its labels the model says."""
        predictions: dict[str, LineLoss] = {}
        for batch in asked(batches):
            nats, is_right = label_losses(model, batch, batch["labels"])
            check_finite(nats, [feature.key for feature in batch.features])
            is_asked = batch["labels"].cpu() != IGNORED
            for row, feature in enumerate(batch.features):
                counts = int(is_asked[row].sum()), int(is_right[row].sum())
                predictions[feature.key] = LineLoss(float(nats[row].sum()), *counts)
        return predictions

    def score(self, predictions: Mapping[str, LineLoss], examples: Sequence[ProbeExample]) -> Scores:
        """Return accuracy and loss over labelled positions, and each sequence's part in them."""
        missing = next((one for one in examples if one.id not in predictions), None)
        if missing is not None or not examples:
            which = "there is no sequence to score" if missing is None else f"{missing.place}: no prediction"
            raise TaskError(f"{which}; every sequence needs a prediction, and there must be one")
        own = [predictions[one.id] for one in examples]
        summed = sum(own, LineLoss())
        figures = {"accuracy": summed.num_right / summed.num_tokens, "loss": summed.per_token}
        single = {
            "accuracy": shares_of_mean([one.num_right for one in own], summed.num_tokens),
            "loss": shares_of_mean([one.nats for one in own], summed.num_tokens),
        }
        return Scores(self.name, self.primary, figures, [one.id for one in examples], single, ceiling=self.ceiling)

    def _feature(self, key: str, number: int, ids: ArrayLike, labels: ArrayLike) -> Feature:
        inputs, targets = {"input_ids": as_tokens(ids)}, {"labels": as_tokens(labels)}
        return Feature(key, number, inputs, targets, BatchPadding(0))

    def _example(self, number: int, place: str, row: Mapping[str, Any]) -> ProbeExample:
        ids, labels = (tuple(row[column_of(row, [name], place)]) for name in ("input_ids", "labels"))
        if len(ids) != len(labels) or all(label == IGNORED for label in labels):
            raise TaskError(f"{place}: {len(ids)} tokens need as many labels, one of them not {IGNORED}")
        highest = max(*ids, *labels)
        if highest >= self.vocab:
            raise TaskError(
                f"{place}: token {highest} is not below the vocabulary of {self.vocab}; use "
                f'load("{self.name}", vocab={highest + 1})'
            )
        return ProbeExample(str(number), ids, labels, place)
