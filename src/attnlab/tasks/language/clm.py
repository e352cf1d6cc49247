"""Causal language modelling: predict each token from those before it.

`perplexity` is exp of the mean loss over all tokens, `line_perplexity` is the mean perplexity of the lines,
`bits_per_byte` is the total loss in bits per byte of text, the only one comparable across tokenizers.
`leak_free_perplexity` predicts token t from a forward pass over tokens 0 … t−1 alone: if it is above `perplexity`, the
mechanism saw the future. A pass over a whole line relies on the mask; a prefix contains no future tokens.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from ..batch import IGNORED, Batch, BatchPadding, Feature, as_tokens
from ..floors import count_tokens
from ..frame import check_fast
from ..labelled import compute_label_losses
from ..objective import check_finite
from ..scores import LOWER_IS_BETTER, Reference, Scores, compute_shares, find_clusters
from .line import LanguageTask, LineLoss, LineLosses, TextLine, score_ngrams, sum_losses


@dataclass(frozen=True, slots=True)
class Block(Feature):
    """A part of a line, and the UTF-8 bytes of the text of its predicted tokens."""

    num_bytes: int


@dataclass(frozen=True)
class Clm(LanguageTask):
    """Predict the next token. A line begins with the tokenizer's start token and ends with its end token, if any."""

    name: str = "clm"
    max_len: int = 512
    has_start: bool = True
    has_end: bool = True
    is_cut: bool = False
    """Whether the rest of a line beyond `max_len` is dropped instead of predicted in further blocks."""
    has_leak_free_perplexity: bool = False
    """Whether `predict` also runs every prefix by itself: a forward pass for each position."""
    head: str = "AutoModelForCausalLM"
    primary: str = "perplexity"
    higher_is_better: bool = False

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the better of the unigram and the bigram of the training tokens."""
        if self.higher_is_better or self.primary not in LOWER_IS_BETTER:
            return None
        blocks = [block.inputs["input_ids"].astype(np.int64) for block in dev.features]
        counts = count_tokens(train_features, 1 + max(int(ids.max()) for ids in blocks))
        return score_ngrams(self, dev, counts, [(ids[:-1], ids[1:]) for ids in blocks])

    def find_special_tokens(self, tokenizer: Any) -> SpecialTokens:
        """Return the start and the end token of a line, those that the tokenizer has and this task uses."""
        start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
        before = () if start is None or not self.has_start else (int(start),)
        after = () if end is None or not self.has_end else (int(end),)
        return SpecialTokens(before, after, "as in the lines that its run trained on")

    def features(self, examples: Sequence[TextLine], tokenizer: Any) -> list[Feature]:
        """Encode lines; a line over `max_len` is split into blocks that overlap by one token.

        So every token but the first of a line is predicted exactly once, unless lines are cut. A line of one token
        gives no block; it is an error if no line gives one.
        """
        check_fast(tokenizer)
        encoded = tokenizer([line.text for line in examples], add_special_tokens=False).encodings
        special_tokens = self.find_special_tokens(tokenizer)
        start, end = special_tokens.before, special_tokens.after
        features: list[Feature] = []
        padding = BatchPadding.of(tokenizer)
        for line, encoding in zip(examples, encoded, strict=True):
            whole = as_tokens([*start, *encoding.ids, *end])
            # Where the text of each token ends: 0 before the text, its length after the last token.
            ends = [*[0] * len(start), *(to for _, to in encoding.offsets)]
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

    def get_labels(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the next token at each position; a batch holds the tokens themselves, which hub models shift."""
        return torch.nn.functional.pad(batch["labels"][:, 1:], (0, 1), value=IGNORED)

    def compute_losses(self, model: nn.Module, batch: Batch) -> list[LineLoss]:
        """Return each block's loss from one forward pass over the whole block, which relies on the causal mask."""
        nats, is_right = compute_label_losses(model, batch, self.get_labels(batch))
        check_finite(nats, [feature.key for feature in batch.features])
        losses = []
        for row, feature in enumerate(batch.features):
            n, num_bytes = len(feature) - 1, getattr(feature, "num_bytes", 0)
            losses.append(LineLoss(float(nats[row, :n].sum()), n, int(is_right[row, :n].sum()), num_bytes))
        return losses

    def compute_others(self, model: nn.Module, features: Sequence[Feature]) -> list[LineLoss]:
        """Return the leak-free loss of each block, if the task asks for it."""
        return compute_leak_free_losses(model, features) if self.has_leak_free_perplexity else []

    def score(self, predictions: Mapping[str, LineLosses], examples: Sequence[TextLine]) -> Scores:
        """Return perplexities and bits per byte, and each line's mean loss."""
        losses = {key: forced for key, (forced, _) in predictions.items()}
        total = sum_losses(losses, examples)
        line_perplexities = np.array([losses[line.id].perplexity for line in examples])
        figures = {
            "perplexity": total.perplexity,
            "line_perplexity": float(np.mean(line_perplexities)),
            "bits_per_byte": total.nats / math.log(2) / total.num_bytes if total.num_bytes else math.nan,
            "loss": total.per_token,
            "accuracy": total.num_right / total.num_tokens,
        }
        nats = [losses[line.id].nats for line in examples]
        single = {
            "loss": compute_shares(nats, total.num_tokens),
            "bits_per_byte": compute_shares(nats, total.num_bytes * math.log(2) or math.nan),
            "line_perplexity": line_perplexities,
            "line_loss": np.array([losses[line.id].per_token for line in examples]),
        }
        leak_free = {key: loss for key, (_, loss) in predictions.items() if loss is not None}
        if leak_free:
            total = sum_losses(leak_free, examples)
            figures["leak_free_perplexity"] = total.perplexity
            single["leak_free_loss"] = compute_shares([leak_free[line.id].nats for line in examples], total.num_tokens)
        ids, clusters = [line.id for line in examples], find_clusters(examples, "line ")
        return Scores(self.name, self.primary, figures, ids, single, clusters=clusters)


def compute_leak_free_losses(model: nn.Module, features: Sequence[Feature]) -> list[LineLoss]:
    """Return each block's loss, each token predicted by a separate pass over the tokens before it."""
    rows = [feature.inputs["input_ids"] for feature in features]
    losses = [LineLoss() for _ in rows]
    # Prefixes of one length are one batch, so that nothing is padded.
    for length in range(1, max(map(len, rows))):
        longer = [number for number, row in enumerate(rows) if len(row) > length]
        ids = torch.from_numpy(np.stack([rows[number][: length + 1] for number in longer])).long()
        past, labels = ids[:, :-1], torch.full_like(ids[:, 1:], IGNORED)
        labels[:, -1] = ids[:, -1]
        prefixes = {"input_ids": past, "attention_mask": torch.ones_like(past)}
        nats, is_right = (values[:, -1] for values in compute_label_losses(model, prefixes, labels))
        check_finite(nats, [features[number].key for number in longer])
        for number, loss, hit in zip(longer, nats.tolist(), is_right.tolist(), strict=True):
            losses[number] += LineLoss(loss, 1, int(hit))
    return losses
