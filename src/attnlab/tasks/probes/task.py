"""Probes as tasks: generated sequences with labels at some positions, and the accuracy of a model at these.

The label at a position is the target of the logits at that position; nothing is shifted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from attnlab.data import PROBES, Probe, Source
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens
from ..floors import choose_best, score_sequence_strategies
from ..labelled import LabelledTask, compute_label_losses
from ..language.line import LineLoss, sum_rows
from ..objective import check_batches
from ..reading import find_column, get_source, read_rows
from ..scores import Reference, Scores, compute_shares


@dataclass(frozen=True, slots=True)
class ProbeExample:
    """One generated sequence with its labels, −100 at positions without a target."""

    id: str
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    place: str


@dataclass(frozen=True)
class ProbeTask(LabelledTask):
    """Predict the token at every labelled position."""

    name: str
    vocab: int = 64
    length: int = 64
    is_fresh: bool = False
    """Whether every update trains on newly generated rows, so that no row is repeated."""
    head: str = "AutoModelForCausalLM"
    primary: str = "accuracy"
    higher_is_better: bool = True

    @property
    def source(self) -> str:
        """The default source: generated sequences of this size."""
        return f"embedded:{self.name}?vocab={self.vocab}&length={self.length}"

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """The probe's tokens are the model's vocabulary."""
        return {"vocab_size": self.vocab}

    @property
    def ceiling(self) -> float | None:
        """Accuracy 1; None for i.i.d. tokens, which cannot be predicted."""
        return None if self.name == "iid" else 1.0

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best trivial strategy on the evaluation sequences."""
        if self.primary != "accuracy":
            return None
        sequences = [(example.input_ids, example.labels) for example in dev.examples]
        is_positional = self.name in PROBES and PROBES[self.name].IS_POSITIONAL
        values = score_sequence_strategies(sequences, train_features, is_positional=is_positional)
        return choose_best(values, higher_is_better=True)

    def examples(self, source: str | Path | Source | None = None, split: str | None = None) -> list[ProbeExample]:
        """Generate sequences, or read those of another source of token ids and labels."""
        rows = read_rows(get_source(self.source if source is None else source, split))
        return [self._read_example(number, place, row) for number, (place, row) in enumerate(rows)]

    def features(self, examples: Sequence[ProbeExample], tokenizer: Any = None) -> list[Feature]:
        """Return the sequences as features; tokens need no tokenizer."""
        return [_make_feature(row.id, number, row.input_ids, row.labels) for number, row in enumerate(examples)]

    def generate_features(self, probe: Probe, numbers: ArrayLike, split: str) -> list[Feature]:
        """Generate the rows of these numbers."""
        rows = np.atleast_1d(np.asarray(numbers))
        generated = zip(rows.tolist(), *probe.batch(rows, split), strict=True)
        return [_make_feature(str(number), number, ids, labels) for number, ids, labels in generated]

    def get_generator(self, source: Source) -> Probe:
        """Return the probe that generates the rows of a source; a file of rows is an error."""
        probe = getattr(source.reader, "made", None)
        if not isinstance(probe, Probe):
            raise TaskError(
                f"fresh rows must be generated, and {source.name} is a fixed set of rows; use 'embedded:{self.name}', "
                "or omit is_fresh"
            )
        return probe

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, LineLoss]:
        """Return each sequence's loss, and how many of its labels the model predicts."""
        predictions: dict[str, LineLoss] = {}
        for batch in check_batches(batches):
            losses = sum_rows(batch, *self._compute_losses(model, batch))
            predictions |= {feature.key: loss for feature, loss in zip(batch.features, losses, strict=True)}
        return predictions

    def score(self, predictions: Mapping[str, LineLoss], examples: Sequence[ProbeExample]) -> Scores:
        """Return accuracy and loss over labelled positions, and each sequence's part in them."""
        missing = next((example for example in examples if example.id not in predictions), None)
        if missing is not None or not examples:
            which = "there is no sequence to score" if missing is None else f"{missing.place}: no prediction"
            raise TaskError(f"{which}; give at least one sequence, and a prediction for each")
        losses = [predictions[example.id] for example in examples]
        total = sum(losses, LineLoss())
        figures = {"accuracy": total.num_right / total.num_tokens, "loss": total.per_token}
        single = {
            "accuracy": compute_shares([loss.num_right for loss in losses], total.num_tokens),
            "loss": compute_shares([loss.nats for loss in losses], total.num_tokens),
        }
        ids = [example.id for example in examples]
        return Scores(self.name, self.primary, figures, ids, single, ceiling=self.ceiling)

    def _compute_losses(self, model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the loss of every position in nats, and whether its label is predicted: [b, n] each."""
        return compute_label_losses(model, batch, batch["labels"])

    def _read_example(self, number: int, place: str, row: Mapping[str, Any]) -> ProbeExample:
        ids, labels = (tuple(row[find_column(row, [name], place)]) for name in ("input_ids", "labels"))
        if len(ids) != len(labels) or all(label == IGNORED for label in labels):
            raise TaskError(f"{place}: {len(ids)} tokens need as many labels, one of them not {IGNORED}")
        highest = max(*ids, *labels)
        if highest >= self.vocab:
            raise TaskError(
                f"{place}: token {highest} is not below the vocabulary of {self.vocab}; use "
                f'load("{self.name}", vocab={highest + 1})'
            )
        return ProbeExample(str(number), ids, labels, place)


def _make_feature(key: str, number: int, ids: ArrayLike, labels: ArrayLike) -> Feature:
    return Feature(key, number, {"input_ids": as_tokens(ids)}, {"labels": as_tokens(labels)}, BatchPadding(0))
