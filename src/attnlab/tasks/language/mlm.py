"""Masked language modelling: predict tokens that were hidden, and pseudo-perplexity, which hides one at a time.

Devlin et al. 2019: 15 % of the tokens, of these 80 % become [MASK], 10 % another token, 10 % stay. Pseudo-perplexity
(Salazar et al. 2020) is exp of the mean of −log p(token | all others).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.data import Masking, Source, Vocabulary, example_keys, mask_tokens
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens, pad
from ..floors import best_of, count_tokens, ngram_losses
from ..floors.ngrams import Ids
from ..labelled import count_labels, label_losses, mean_loss
from ..objective import asked, check_finite, with_penalty
from ..scores import LOWER_IS_BETTER, Reference, Scores, shares_of_mean
from .line import Line, LineLoss, clusters_of, perplexity, read_lines, total

COPIES = 64
"""Copies of a line, each with one token hidden, that are fed at a time."""


@dataclass(frozen=True, slots=True)
class Maskable(Feature):
    """A feature that knows which of its ids may be hidden, and what hides them."""

    vocabulary: Vocabulary


@dataclass(frozen=True)
class Mlm:
    """Predict hidden tokens."""

    name: str = "mlm"
    max_len: int = 128
    masking: Masking = field(default_factory=Masking)
    is_pseudo: bool = False
    """Whether `predict` also hides every token by itself: a forward pass for each."""
    head: str = "AutoModelForMaskedLM"
    primary: str = "loss"
    higher_is_better: bool = False

    @property
    def ceiling(self) -> float | None:
        """Text cannot be predicted completely, and how well it can is not known."""
        return None

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the better of unigram and left-neighbour bigram of what is trained on, on the hidden tokens."""
        if self.higher_is_better or self.primary not in LOWER_IS_BETTER:
            return None
        is_ordinary = ~_vocabulary(dev.features).special
        counts = count_tokens(train_features, len(is_ordinary), is_ordinary)
        if not counts.num_tokens:
            return None
        hidden = [self._hidden(feature) for feature in dev.features]
        values: dict[str, float] = {}
        for strategy, nats in ngram_losses(counts, hidden).items():
            losses: dict[str, LineLoss] = {}
            for feature, own, (_, tokens) in zip(dev.features, nats, hidden, strict=True):
                losses[feature.key] = losses.get(feature.key, LineLoss()) + LineLoss(own, len(tokens))
            values[strategy] = self.score({key: (loss, loss) for key, loss in losses.items()}, dev.examples).value
        return best_of(values, higher_is_better=False)

    def _hidden(self, feature: Feature) -> tuple[Ids, Ids]:
        """Return the hidden tokens of a feature as it is evaluated, behind what is shown to the left of each."""
        batch = self.collate([feature])
        labels = batch["labels"][0].numpy()
        places = np.flatnonzero(labels != IGNORED)
        return batch["input_ids"][0].numpy()[places - 1], labels[places]

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """The model's own vocabulary."""
        return {}

    def examples(self, source: str | Path | Source, split: str | None = None) -> list[Line]:
        """Read the lines of a text."""
        return read_lines(source, split)

    def features(self, examples: Sequence[Line], tokenizer: Any) -> list[Feature]:
        """Encode lines with the tokenizer's marks, a long one in several pieces."""
        if tokenizer.mask_token_id is None:
            raise TaskError(f"{type(tokenizer).__name__} has no mask token, which masked language modelling needs")
        vocabulary, padding = Vocabulary.of(tokenizer), BatchPadding.of(tokenizer)
        encoded = tokenizer(
            [line.text for line in examples],
            truncation=True,
            max_length=self.max_len,
            return_overflowing_tokens=True,
            padding=False,
        )
        features: list[Feature] = []
        for row, one in zip(encoded["overflow_to_sample_mapping"], encoded.encodings, strict=True):
            inputs = {"input_ids": as_tokens(one.ids), "token_type_ids": as_tokens(one.type_ids)}
            features.append(Maskable(examples[row].id, len(features), inputs, {}, padding, vocabulary))
        return features

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch with tokens hidden: which, is a function of seed, epoch and the feature's number."""
        batch = pad(features)
        keys = example_keys(seed, epoch, np.array([feature.number for feature in features]))
        ids, labels = mask_tokens(batch["input_ids"].numpy(), _vocabulary(features), keys, self.masking)
        batch["input_ids"], batch["labels"] = torch.from_numpy(ids).long(), torch.from_numpy(labels).long()
        return batch

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss of the hidden tokens."""
        return with_penalty(model, mean_loss(model, batch, batch["labels"]))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many tokens are hidden."""
        return count_labels(batch["labels"])

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, tuple[LineLoss, LineLoss | None]]:
        """Return each line's loss on its hidden tokens, and beside it the pseudo-loss where that was asked for."""
        losses: dict[str, LineLoss] = {}
        pseudo: dict[str, LineLoss] = {}
        for batch in asked(batches):
            nats, is_right = label_losses(model, batch, batch["labels"])
            check_finite(nats, [feature.key for feature in batch.features])
            is_hidden = batch["labels"].cpu() != IGNORED
            for row, feature in enumerate(batch.features):
                own = LineLoss(float(nats[row].sum()), int(is_hidden[row].sum()), int(is_right[row].sum()))
                losses[feature.key] = losses.get(feature.key, LineLoss()) + own
                if self.is_pseudo:
                    pseudo[feature.key] = pseudo.get(feature.key, LineLoss()) + pseudo_loss(model, feature)
        return {key: (loss, pseudo.get(key)) for key, loss in losses.items()}

    def score(self, predictions: Mapping[str, tuple[LineLoss, LineLoss | None]], examples: Sequence[Line]) -> Scores:
        """Return loss, accuracy and perplexity over hidden tokens; a short line may have none of them."""
        losses = {key: masked for key, (masked, _) in predictions.items()}
        summed = total(losses, examples)
        figures = {
            "loss": summed.per_token,
            "accuracy": summed.num_right / summed.num_tokens,
            "perplexity": perplexity(summed),
        }
        own = [losses[line.id] for line in examples]
        single = {
            "loss": shares_of_mean([loss.nats for loss in own], summed.num_tokens),
            # A line without hidden tokens lost nothing and says nothing: NaN keeps it in its place.
            "line_loss": np.array([loss.per_token if loss.num_tokens else np.nan for loss in own]),
        }
        alone = {key: loss for key, (_, loss) in predictions.items() if loss is not None}
        if alone:
            summed_alone = total(alone, examples)
            figures["pseudo_perplexity"] = perplexity(summed_alone)
            single["pseudo_loss"] = shares_of_mean([alone[line.id].nats for line in examples], summed_alone.num_tokens)
        return Scores(
            self.name, self.primary, figures, [line.id for line in examples], single, clusters=clusters_of(examples)
        )


def pseudo_loss(model: nn.Module, feature: Feature) -> LineLoss:
    """Return the loss of every ordinary token of a feature, hidden while all others are shown."""
    vocabulary = _vocabulary([feature])
    mask = vocabulary.mask
    assert mask is not None, "features are made with tokenizers that have a mask token"
    ids = torch.from_numpy(feature.inputs["input_ids"]).long()
    places = torch.tensor([at for at, token in enumerate(ids.tolist()) if not vocabulary.special[token]])
    loss = LineLoss()
    for some in places.split(COPIES):
        rows = torch.arange(len(some))
        hidden = pad([feature] * len(some))
        hidden["input_ids"][rows, some] = mask
        labels = torch.full_like(hidden["input_ids"], IGNORED)
        labels[rows, some] = ids[some]
        nats, is_right = label_losses(model, hidden, labels)
        loss += LineLoss(float(nats.sum()), len(some), int(is_right.sum()))
    return loss


def _vocabulary(features: Sequence[Feature]) -> Vocabulary:
    first = features[0]
    if not isinstance(first, Maskable):
        raise TaskError("masking needs features made by the task mlm, which know the tokenizer's vocabulary")
    return first.vocabulary
