"""Masked language modelling: predict tokens that were hidden, and pseudo-perplexity, which hides one at a time.

Devlin et al. 2019: 15 % of the tokens, of these 80 % become [MASK], 10 % another token, 10 % stay. Pseudo-perplexity
(Salazar et al. 2020) is exp of the mean of −log p(token | all others).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from attnlab.data import Masking, Vocabulary, example_keys, mask_tokens
from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens, pad
from ..floors import Ids, count_tokens
from ..labelled import compute_label_losses
from ..scores import LOWER_IS_BETTER, Reference, Scores, compute_shares, find_clusters
from .line import LanguageTask, LineLoss, LineLosses, TextLine, score_ngrams, sum_losses

COPIES = 64
"""Copies of a line, each with one token hidden, in one batch."""


@dataclass(frozen=True, slots=True)
class Maskable(Feature):
    """A feature that knows which of its ids may be hidden, and what hides them."""

    vocabulary: Vocabulary


@dataclass(frozen=True)
class Mlm(LanguageTask):
    """Predict hidden tokens."""

    name: str = "mlm"
    max_len: int = 128
    masking: Masking = field(default_factory=Masking)
    is_pseudo: bool = False
    """Whether `predict` also hides every token by itself: a forward pass for each."""
    head: str = "AutoModelForMaskedLM"
    primary: str = "loss"
    higher_is_better: bool = False

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

    def find_special_tokens(self, tokenizer: Any) -> SpecialTokens:
        """Return the tokenizer's marks around a line."""
        return SpecialTokens.of_tokenizer(tokenizer, "as in the lines that its run trained on")

    def features(self, examples: Sequence[TextLine], tokenizer: Any) -> list[Feature]:
        """Encode lines with the tokenizer's marks, a long one in several pieces."""
        if tokenizer.mask_token_id is None:
            raise TaskError(
                "masked language modelling needs a tokenizer with a mask token, and this one has no mask token; "
                "`wordpiece:N` and `bpe:N` have one, `word` and `char` have none"
            )
        vocabulary, padding = Vocabulary.of(tokenizer), BatchPadding.of(tokenizer)
        texts = [line.text for line in examples]
        encoded = tokenizer(texts, truncation=True, max_length=self.max_len, return_overflowing_tokens=True)
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

    def compute_others(self, model: nn.Module, features: Sequence[Feature]) -> list[LineLoss]:
        """Return the pseudo-loss of each feature, if the task asks for it."""
        return [compute_pseudo_loss(model, feature) for feature in features] if self.is_pseudo else []

    def score(self, predictions: Mapping[str, LineLosses], examples: Sequence[TextLine]) -> Scores:
        """Return loss, accuracy and perplexity over hidden tokens; a short line may have none of them."""
        losses = {key: masked for key, (masked, _) in predictions.items()}
        total = sum_losses(losses, examples)
        accuracy = total.num_right / total.num_tokens
        figures = {"loss": total.per_token, "accuracy": accuracy, "perplexity": total.perplexity}
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
