"""Masked language modelling: predict tokens that were hidden, and pseudo-perplexity, which hides one at a time.

Devlin et al. 2019: 15 % of the tokens, of these 80 % become [MASK], 10 % another token, 10 % stay. Pseudo-perplexity
(Salazar et al. 2020) is exp of the mean of −log p(token | all others).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.data import Masking, Source, Vocabulary, example_keys, mask_tokens
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens, pad
from ..floors import Ids, count_tokens
from ..labelled import compute_label_losses, compute_mean_loss, count_labels
from ..objective import add_penalty, check_batches, check_finite
from ..scores import LOWER_IS_BETTER, Reference, Scores, compute_shares, find_clusters
from .line import Line, LineLoss, read_lines, score_ngrams, sum_losses

COPIES = 64
"""Copies of a line, each with one token hidden, in one batch."""


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

    ceiling: ClassVar[float | None] = None
    """The entropy of text is not known."""
    head_settings: ClassVar[Mapping[str, Any]] = {}

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the better of unigram and left-neighbour bigram of what is trained on, on the hidden tokens."""
        if self.higher_is_better or self.primary not in LOWER_IS_BETTER:
            return None
        is_ordinary = ~_vocabulary(dev.features).special
        counts = count_tokens(train_features, len(is_ordinary), is_ordinary)
        return score_ngrams(self, dev, counts, [self._find_hidden(feature) for feature in dev.features])

    def _find_hidden(self, feature: Feature) -> tuple[Ids, Ids]:
        """Return the left neighbours, as shown, and the hidden tokens of a feature as it is evaluated."""
        batch = self.collate([feature])
        labels = batch["labels"][0].numpy()
        places = np.flatnonzero(labels != IGNORED)
        return batch["input_ids"][0].numpy()[places - 1], labels[places]

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
        for row, encoding in zip(encoded["overflow_to_sample_mapping"], encoded.encodings, strict=True):
            inputs = {"input_ids": as_tokens(encoding.ids), "token_type_ids": as_tokens(encoding.type_ids)}
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
        return add_penalty(model, compute_mean_loss(model, batch, batch["labels"]))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many tokens are hidden."""
        return count_labels(batch["labels"])

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, tuple[LineLoss, LineLoss | None]]:
        """Return each line's loss on its hidden tokens, and beside it the pseudo-loss where that was asked for."""
        losses: defaultdict[str, LineLoss] = defaultdict(LineLoss)
        pseudo: defaultdict[str, LineLoss] = defaultdict(LineLoss)
        for batch in check_batches(batches):
            nats, is_right = compute_label_losses(model, batch, batch["labels"])
            check_finite(nats, [feature.key for feature in batch.features])
            is_hidden = batch["labels"].cpu() != IGNORED
            for row, feature in enumerate(batch.features):
                loss = LineLoss(float(nats[row].sum()), int(is_hidden[row].sum()), int(is_right[row].sum()))
                losses[feature.key] += loss
                if self.is_pseudo:
                    pseudo[feature.key] += compute_pseudo_loss(model, feature)
        return {key: (loss, pseudo.get(key)) for key, loss in losses.items()}

    def score(self, predictions: Mapping[str, tuple[LineLoss, LineLoss | None]], examples: Sequence[Line]) -> Scores:
        """Return loss, accuracy and perplexity over hidden tokens; a short line may have none of them."""
        losses = {key: masked for key, (masked, _) in predictions.items()}
        total = sum_losses(losses, examples)
        figures = {
            "loss": total.per_token,
            "accuracy": total.num_right / total.num_tokens,
            "perplexity": total.perplexity,
        }
        line_losses = [losses[line.id] for line in examples]
        single = {
            "loss": compute_shares([loss.nats for loss in line_losses], total.num_tokens),
            # NaN keeps the place of a line without hidden tokens, which has no loss.
            "line_loss": np.array([loss.per_token if loss.num_tokens else np.nan for loss in line_losses]),
        }
        pseudo = {key: loss for key, (_, loss) in predictions.items() if loss is not None}
        if pseudo:
            pseudo_total = sum_losses(pseudo, examples)
            figures["pseudo_perplexity"] = pseudo_total.perplexity
            single["pseudo_loss"] = compute_shares([pseudo[line.id].nats for line in examples], pseudo_total.num_tokens)
        ids, clusters = [line.id for line in examples], find_clusters(examples, "line ")
        return Scores(self.name, self.primary, figures, ids, single, clusters=clusters)


def compute_pseudo_loss(model: nn.Module, feature: Feature) -> LineLoss:
    """Return the loss of every ordinary token of a feature, hidden while all others are shown."""
    vocabulary = _vocabulary([feature])
    mask = vocabulary.mask
    assert mask is not None, "features are made with tokenizers that have a mask token"
    ids = torch.from_numpy(feature.inputs["input_ids"]).long()
    places = torch.tensor([at for at, token in enumerate(ids.tolist()) if not vocabulary.special[token]])
    loss = LineLoss()
    for chunk in places.split(COPIES):
        rows = torch.arange(len(chunk))
        hidden = pad([feature] * len(chunk))
        hidden["input_ids"][rows, chunk] = mask
        labels = torch.full_like(hidden["input_ids"], IGNORED)
        labels[rows, chunk] = ids[chunk]
        nats, is_right = compute_label_losses(model, hidden, labels)
        loss += LineLoss(float(nats.sum()), len(chunk), int(is_right.sum()))
    return loss


def _vocabulary(features: Sequence[Feature]) -> Vocabulary:
    first = features[0]
    if not isinstance(first, Maskable):
        raise TaskError("masking needs features made by the task mlm, which know the tokenizer's vocabulary")
    return first.vocabulary
