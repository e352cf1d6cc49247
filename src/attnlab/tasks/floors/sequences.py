"""Trivial strategies on sequences with labels at some positions: what can be said without doing what is asked.

Each is scored on the sequences that a model is evaluated on. The bigram and the likeliest position are learned from
training rows, as they would know the evaluated ones by heart otherwise. Where a strategy leaves several tokens, each
counts by its chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..batch import IGNORED, Feature

NUM_ROWS = 1024
"""Training rows that strategies learn from."""
MOST_PAIRS = 1 << 28
"""Pairs of positions that are compared in all: the first sequences stand for the rest where these are too many."""
BLOCK = 1 << 22
"""Pairs of positions that are compared at a time."""

Rows = NDArray[np.int64]
# An answer is a token that is the label of some position of these sequences.
MAJORITY = "always the commonest label"
COMMONEST = "the commonest answer so far"
ANY = "any answer so far"
POSITION = "always the token at position {}"
LIKELIEST = "the likeliest position of the answer"
BIGRAM = "the commonest label of the current token"


def sequence_strategies(
    sequences: Sequence[tuple[Sequence[int], Sequence[int]]],
    train_features: Iterable[Feature] = (),
    *,
    is_positional: bool = False,
) -> dict[str, float]:
    """Return the accuracy of each strategy over the labelled positions of sequences of ids and labels.

    Where the position of a question says that of its answer (`is_positional`), knowing it is no trivial strategy.
    """
    longest = max(len(ids) for ids, _ in sequences)
    few = sequences[: max(1, MOST_PAIRS // longest**2)]
    ids, labels = as_rows([one[0] for one in few], -1), as_rows([one[1] for one in few], IGNORED)
    asked = labels[labels != IGNORED]
    can_answer = np.zeros(int(max(ids.max(), labels.max())) + 1, dtype=np.bool_)
    can_answer[asked] = True
    values = {MAJORITY: float(np.unique(asked, return_counts=True)[1].max() / asked.size)}
    trained_on = list(islice(train_features, NUM_ROWS))
    if trained_on:
        values[BIGRAM] = bigram_accuracy(ids, labels, trained_on)
        if not is_positional:
            values[LIKELIEST] = position_accuracy(ids, labels, trained_on)
    rows = max(1, BLOCK // longest**2)
    parts = [
        context_hits(ids[start : start + rows], labels[start : start + rows], can_answer)
        for start in range(0, len(ids), rows)
    ]
    commonest, any_of, by_position = (sum(part[at] for part in parts) for at in range(3))
    best = int(np.argmax(by_position))
    return {
        **values,
        COMMONEST: float(commonest / asked.size),
        ANY: float(any_of / asked.size),
        POSITION.format(best + 1): float(np.asarray(by_position)[best] / asked.size),
    }


def as_rows(sequences: Sequence[Sequence[int]], fill: int) -> Rows:
    """Return sequences as one array, filled up on the right."""
    rows = np.full((len(sequences), max(map(len, sequences))), fill, dtype=np.int64)
    for number, sequence in enumerate(sequences):
        rows[number, : len(sequence)] = sequence
    return rows


def context_hits(ids: Rows, labels: Rows, can_answer: NDArray[np.bool_]) -> tuple[float, float, NDArray[np.float64]]:
    """Count what the commonest token so far, any token so far, and the token at each position get right."""
    is_same = (ids[:, :, None] == ids[:, None, :]) & (ids >= 0)[:, None, :]
    is_first = ~np.tril(is_same, -1).any(axis=2) & can_answer[ids] & (ids >= 0)
    rows, places = np.nonzero(labels != IGNORED)
    wanted = labels[rows, places][:, None]
    is_past = np.arange(ids.shape[1]) <= places[:, None]
    so_far = np.cumsum(is_same, axis=1, dtype=np.int32)[rows, places]
    counts = np.where(is_past & is_first[rows], so_far, 0)
    is_hit = is_past & (ids[rows] == wanted)
    is_top = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    num_seen, num_top = (flags.sum(axis=1) for flags in (counts > 0, is_top))
    commonest = ((is_top & is_hit).any(axis=1) / np.maximum(num_top, 1)).sum()
    any_of = ((counts > 0) & is_hit).any(axis=1) / np.maximum(num_seen, 1)
    return float(commonest), float(any_of.sum()), is_hit.sum(axis=0).astype(np.float64)


def position_accuracy(ids: Rows, labels: Rows, trained_on: Sequence[Feature]) -> float:
    """Return how often the answer stands where, for its question's position, it stood most often in training."""
    longest = max(ids.shape[1], *map(len, trained_on))
    hits = np.zeros((longest, longest), dtype=np.int64)
    for feature in trained_on:
        row, targets = feature.inputs["input_ids"], np.asarray(feature.targets["labels"])
        places = np.flatnonzero(targets != IGNORED)
        is_hit = (row == targets[places, None]) & (np.arange(len(row)) <= places[:, None])
        hits[places, : len(row)] += is_hit
    rows, places = np.nonzero(labels != IGNORED)
    return float((ids[rows, hits.argmax(axis=1)[places]] == labels[rows, places]).mean())


def bigram_accuracy(ids: Rows, labels: Rows, trained_on: Sequence[Feature]) -> float:
    """Return how often the commonest label of a token in training is the label of that token here."""
    seen = [pair for feature in trained_on for pair in labelled_pairs(feature)]
    pairs, counts = np.unique(np.array(seen), axis=0, return_counts=True)
    order = np.argsort(counts, kind="stable")  # the commonest label of a token is written last, and stays
    answers = np.full(max(int(ids.max()), int(pairs[:, 0].max())) + 1, IGNORED - 1, dtype=np.int64)
    answers[pairs[order, 0]] = pairs[order, 1]
    is_asked = labels != IGNORED
    return float((answers[ids[is_asked]] == labels[is_asked]).mean())


def labelled_pairs(feature: Feature) -> Iterator[tuple[int, int]]:
    """Yield the token and the label of every labelled position."""
    ids, labels = feature.inputs["input_ids"], np.asarray(feature.targets["labels"])
    yield from zip(ids[labels != IGNORED].tolist(), labels[labels != IGNORED].tolist(), strict=True)
