"""Unigram and bigram models of the training tokens, smoothed without a parameter (Witten & Bell 1991).

p(w) = (c(w) + T/V) / (N + T) with T the number of different tokens among N, and V the size of the vocabulary;
p(w | v) = (c(v, w) + T(v) p(w)) / (c(v) + T(v)) with T(v) the number of different tokens seen behind v.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..batch import Feature

NUM_TOKENS = 2_000_000
"""Tokens of the training set to count, from its start: more would change little and delay the run."""

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]


class NgramCounts:
    """Counts of tokens w and their left neighbours v: c(w), c(v), T(v), and c(v, w) of the pairs v·V + w, ascending."""

    def __init__(self, lefts: Ids, tokens: Ids, vocab: int) -> None:
        self.num_tokens = tokens.size
        self.pairs, self.pair_counts = np.unique(lefts * vocab + tokens, return_counts=True)
        self.unigrams, self.lefts, self.followers = (
            np.bincount(ids, minlength=vocab).astype(np.float64) for ids in (tokens, lefts, self.pairs // vocab)
        )

    @cached_property
    def probabilities(self) -> Numbers:
        """p(w) of every token."""
        num_types, vocab = np.count_nonzero(self.unigrams), self.unigrams.size
        if not num_types:
            return np.full(vocab, 1 / vocab)
        smoothed = self.unigrams + num_types / vocab
        return np.asarray(smoothed / smoothed.sum())

    def unigram_losses(self, tokens: Ids) -> Numbers:
        """Return −log p(w) of tokens."""
        return np.asarray(-np.log(self.probabilities[tokens]))

    def bigram_losses(self, lefts: Ids, tokens: Ids) -> Numbers:
        """Return −log p(w | v) of tokens after their left neighbours, −log p(w) if the neighbour was never seen."""
        wanted = lefts * self.unigrams.size + tokens
        seen = np.zeros(len(tokens))
        if self.pairs.size:
            places = np.minimum(np.searchsorted(self.pairs, wanted), self.pairs.size - 1)
            seen = np.where(self.pairs[places] == wanted, self.pair_counts[places], 0.0)
        totals, types = self.lefts[lefts], self.followers[lefts]
        mixed = (seen + types * self.probabilities[tokens]) / np.maximum(totals + types, 1)
        return np.asarray(-np.log(np.where(totals > 0, mixed, self.probabilities[tokens])))


def compute_ngram_losses(counts: NgramCounts, parts: Sequence[tuple[Ids, Ids]]) -> dict[str, list[float]]:
    """Return the summed loss of unigram and bigram on each part, given as (left neighbours, tokens)."""
    lefts, tokens = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    ends = np.cumsum([len(part[1]) for part in parts])
    source = f"of {counts.num_tokens:,} training tokens"
    by_token = {
        f"unigram {source}": counts.unigram_losses(tokens),
        f"bigram {source}, Witten–Bell": counts.bigram_losses(lefts, tokens),
    }
    return {name: [float(part.sum()) for part in np.split(losses, ends[:-1])] for name, losses in by_token.items()}


def count_tokens(
    features: Iterable[Feature], least_vocab: int, is_target: NDArray[np.bool_] | None = None, most: int = NUM_TOKENS
) -> NgramCounts:
    """Count the tokens of features and their left neighbours, up to a number; `is_target` leaves tokens out.

    The vocabulary has the tokens that occur, and `least_vocab` at least. The first token of a feature is never
    predicted, so it counts as a neighbour alone.
    """
    lefts, rights, num_tokens = [], [], 0
    for feature in features:
        ids = feature.inputs["input_ids"].astype(np.int64)
        lefts.append(ids[:-1])
        rights.append(ids[1:])
        num_tokens += len(ids) - 1
        if num_tokens >= most:
            break
    left, right = (np.concatenate(parts)[:most] if parts else np.zeros(0, np.int64) for parts in (lefts, rights))
    if is_target is not None:
        left, right = left[is_target[right]], right[is_target[right]]
    vocab = max(least_vocab, 1 + int(left.max(initial=0)), 1 + int(right.max(initial=0)))
    return NgramCounts(left, right, vocab)
