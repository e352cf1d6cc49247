"""Causal language modelling: predict each token from those before it.

`perplexity` is exp of the mean loss over all tokens, `line_perplexity` the mean over lines of each line's own,
`bits_per_byte` all nats in bits over the bytes of the text, which alone compares different tokenizers.
`honest_perplexity` feeds the model nothing but the past (see `prefix`): below it, a mechanism saw the future.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.data import Source
from attnlab.errors import TaskError

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens, pad
from ..floors import best_of, count_tokens, ngram_losses
from ..frame import check_fast
from ..labelled import count_labels, label_losses, mean_loss
from ..objective import asked, check_finite, with_penalty
from ..scores import LOWER_IS_BETTER, Reference, Scores, shares_of_mean
from .line import Line, LineLoss, clusters_of, perplexity, read_lines, total
from .prefix import honest_losses


@dataclass(frozen=True, slots=True)
class Block(Feature):
    """A part of a line, and the UTF-8 bytes of the text that its predicted tokens stand for."""

    num_bytes: int


@dataclass(frozen=True)
class Clm:
    """Predict the next token. A line begins with the tokenizer's start token and ends with its end token, if any."""

    name: str = "clm"
    max_len: int = 512
    has_start: bool = True
    has_end: bool = True
    is_cut: bool = False
    """Whether what a line has beyond `max_len` is left out, and not predicted in further blocks."""
    is_honest: bool = False
    """Whether `predict` also feeds every prefix by itself: a forward pass for each position."""
    head: str = "AutoModelForCausalLM"
    primary: str = "perplexity"
    higher_is_better: bool = False

    @property
    def ceiling(self) -> float | None:
        """Text cannot be predicted completely, and how well it can is not known."""
        return None

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the better of the unigram and the bigram of what is trained on."""
        if self.higher_is_better or self.primary not in LOWER_IS_BETTER:
            return None
        counts = count_tokens(train_features, 1 + max(int(one.inputs["input_ids"].max()) for one in dev.features))
        if not counts.num_tokens:
            return None
        blocks = [block.inputs["input_ids"].astype(np.int64) for block in dev.features]
        values: dict[str, float] = {}
        for strategy, nats in ngram_losses(counts, [(ids[:-1], ids[1:]) for ids in blocks]).items():
            losses: dict[str, LineLoss] = {}
            for block, own in zip(dev.features, nats, strict=True):
                add_losses(losses, {block.key: LineLoss(own, len(block) - 1, 0, block.num_bytes)})
            values[strategy] = self.score({key: (loss, loss) for key, loss in losses.items()}, dev.examples).value
        return best_of(values, higher_is_better=False)

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """The model's own vocabulary."""
        return {}

    def examples(self, source: str | Path | Source, split: str | None = None) -> list[Line]:
        """Read the lines of a text."""
        return read_lines(source, split)

    def features(self, examples: Sequence[Line], tokenizer: Any) -> list[Feature]:
        """Encode lines; one longer than `max_len` goes on in a block that begins with the last token of the one before.

        So every token but the first of a line is predicted exactly once, unless lines are cut. A line of a single
        token has none to predict and gets no block; that no line has any is an error.
        """
        check_fast(tokenizer)
        encoded = tokenizer([line.text for line in examples], add_special_tokens=False).encodings
        start, end = self._start(tokenizer), self._end(tokenizer)
        features: list[Feature] = []
        padding = BatchPadding.of(tokenizer)
        for line, one in zip(examples, encoded, strict=True):
            whole = as_tokens([*start, *one.ids, *end])
            # Where the text of each token ends: none of it before, all of it behind the last.
            ends = [*[0] * len(start), *(to for _, to in one.offsets)]
            ends = [*ends[: len(whole) - 1 - len(end)], *[len(line.text)] * (1 + len(end))]
            for begin in (0,) if self.is_cut else range(0, len(whole) - 1, self.max_len - 1):
                block = whole[begin : begin + self.max_len]
                if len(block) < 2:
                    continue
                num_bytes = len(line.text[ends[begin] : ends[begin + len(block) - 1]].encode())
                ids = {"input_ids": block}
                features.append(Block(line.id, len(features), ids, {"labels": block}, padding, num_bytes))
        if examples and not features:
            raise TaskError(
                f"{examples[0].place}: {examples[0].text[:40]!r} is {len(encoded[0].ids)} token, which leaves none to "
                f"predict, and so are all {len(examples)} lines; use longer ones, or a tokenizer with a start token"
            )
        return features

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch of blocks; labels are the tokens themselves, as the hub's models shift them."""
        return pad(features)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss of the next token."""
        return with_penalty(model, mean_loss(model, batch, next_tokens(batch)))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many tokens are predicted."""
        return count_labels(next_tokens(batch))

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, tuple[LineLoss, LineLoss | None]]:
        """Return each line's loss, and beside it the honest one where that was asked for."""
        forced: dict[str, LineLoss] = {}
        honest: dict[str, LineLoss] = {}
        # Batch by batch, so that whoever makes them on the way can stop there.
        for batch in batches:
            add_losses(forced, forced_losses(model, [batch]))
            if self.is_honest:
                add_losses(honest, honest_losses(model, [batch]))
        return {key: (loss, honest.get(key)) for key, loss in forced.items()}

    def score(self, predictions: Mapping[str, tuple[LineLoss, LineLoss | None]], examples: Sequence[Line]) -> Scores:
        """Return perplexities and bits per byte, and each line's mean loss."""
        losses = {key: forced for key, (forced, _) in predictions.items()}
        summed = total(losses, examples)
        num_bytes = summed.num_bytes
        figures = {
            "perplexity": perplexity(summed),
            "line_perplexity": float(np.mean([perplexity(losses[line.id]) for line in examples])),
            "bits_per_byte": summed.nats / math.log(2) / num_bytes if num_bytes else math.nan,
            "loss": summed.per_token,
            "accuracy": summed.num_right / summed.num_tokens,
        }
        nats = [losses[line.id].nats for line in examples]
        single = {
            "loss": shares_of_mean(nats, summed.num_tokens),
            "bits_per_byte": shares_of_mean(nats, num_bytes * math.log(2) or math.nan),
            "line_perplexity": np.array([perplexity(losses[line.id]) for line in examples]),
            "line_loss": np.array([losses[line.id].per_token for line in examples]),
        }
        honest = {key: alone for key, (_, alone) in predictions.items() if alone is not None}
        if honest:
            alone = total(honest, examples)
            figures["honest_perplexity"] = perplexity(alone)
            single["honest_loss"] = shares_of_mean([honest[line.id].nats for line in examples], alone.num_tokens)
        return Scores(
            self.name, self.primary, figures, [line.id for line in examples], single, clusters=clusters_of(examples)
        )

    def _start(self, tokenizer: Any) -> list[int]:
        token = tokenizer.bos_token_id
        return [token] if self.has_start and token is not None else []

    def _end(self, tokenizer: Any) -> list[int]:
        token = tokenizer.eos_token_id
        return [token] if self.has_end and token is not None else []


def next_tokens(batch: Mapping[str, Tensor]) -> Tensor:
    """Return the label of every position: the token behind it."""
    return torch.nn.functional.pad(batch["labels"][:, 1:], (0, 1), value=IGNORED)


def add_losses(losses: dict[str, LineLoss], more: Mapping[str, LineLoss]) -> None:
    """Add the losses of further blocks to those of their lines."""
    for key, loss in more.items():
        losses[key] = losses.get(key, LineLoss()) + loss


def forced_losses(model: nn.Module, batches: Iterable[Batch]) -> dict[str, LineLoss]:
    """Return each line's loss with the whole line fed at once, which trusts the model not to look ahead."""
    losses: dict[str, LineLoss] = {}
    for batch in asked(batches):
        nats, is_right = label_losses(model, batch, next_tokens(batch))
        check_finite(nats, [feature.key for feature in batch.features])
        for row, feature in enumerate(batch.features):
            n = len(feature) - 1
            num_bytes = feature.num_bytes if isinstance(feature, Block) else 0
            own = LineLoss(float(nats[row, :n].sum()), n, int(is_right[row, :n].sum()), num_bytes)
            losses[feature.key] = losses.get(feature.key, LineLoss()) + own
    return losses
