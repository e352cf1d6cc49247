"""Trivial strategies on sequences with labels at some positions, scored on the sequences a model is evaluated on.

The bigram and the likeliest position are learned from training rows. If a strategy leaves several tokens, one of them
is drawn, so each counts by its probability.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..batch import IGNORED, Feature, fill_rows

NUM_ROWS = 1024
"""Training rows that strategies are fitted to."""
MAX_PAIRS = 1 << 28
"""Pairs of positions compared in total; only the first sequences are used if there are more."""
BLOCK = 1 << 22
"""Pairs of positions compared at a time."""

Rows = NDArray[np.int64]
# An answer is a token that is the label of some position of these sequences.
MAJORITY = "always the commonest label"
COMMONEST = "the commonest answer so far"
ANY = "any answer so far"
POSITION = "always the token at position {}"
LIKELIEST = "the likeliest position of the answer"
BIGRAM = "the commonest label of the current token"


def score_sequence_strategies(
    sequences: Sequence[tuple[Sequence[int], Sequence[int]]],
    train_features: Iterable[Feature] = (),
    *,
    is_positional: bool = False,
) -> dict[str, float]:
    """Return the accuracy of each strategy over the labelled positions of sequences (ids, labels).

    If the position of a question determines that of its answer (`is_positional`), knowing it is not trivial.
    """
    longest = max(len(ids) for ids, _ in sequences)
    few = sequences[: max(1, MAX_PAIRS // longest**2)]
    ids, labels = (fill_rows(rows, fill) for rows, fill in zip(zip(*few, strict=True), (-1, IGNORED), strict=True))
    asked = labels[labels != IGNORED]
    can_answer = np.zeros(int(max(ids.max(), labels.max())) + 1, dtype=np.bool_)
    can_answer[asked] = True
    values = {MAJORITY: float(np.unique(asked, return_counts=True)[1].max() / asked.size)}
    train_rows = list(islice(train_features, NUM_ROWS))
    if train_rows:
        values[BIGRAM] = _score_bigram(ids, labels, train_rows)
        if not is_positional:
            values[LIKELIEST] = _score_position(ids, labels, train_rows)
    rows = max(1, BLOCK // longest**2)
    parts = [
        _count_context_hits(ids[start : start + rows], labels[start : start + rows], can_answer)
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


def _count_context_hits(
    ids: Rows, labels: Rows, can_answer: NDArray[np.bool_]
) -> tuple[float, float, NDArray[np.float64]]:
    """Count the hits of the commonest answer so far, of any answer so far, and of the token at each position."""
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


def _score_position(ids: Rows, labels: Rows, train_rows: Sequence[Feature]) -> float:
    """Return how often the answer is at the position where it was most often in training, given its question's."""
    longest = max(ids.shape[1], *map(len, train_rows))
    hits = np.zeros((longest, longest), dtype=np.int64)
    for feature in train_rows:
        row, targets = feature.inputs["input_ids"], np.asarray(feature.targets["labels"])
        places = np.flatnonzero(targets != IGNORED)
        is_hit = (row == targets[places, None]) & (np.arange(len(row)) <= places[:, None])
        hits[places, : len(row)] += is_hit
    rows, places = np.nonzero(labels != IGNORED)
    return float((ids[rows, hits.argmax(axis=1)[places]] == labels[rows, places]).mean())


def _score_bigram(ids: Rows, labels: Rows, train_rows: Sequence[Feature]) -> float:
    tokens = np.concatenate([feature.inputs["input_ids"] for feature in train_rows])
    targets = np.concatenate([np.asarray(feature.targets["labels"]) for feature in train_rows])
    seen = np.stack([tokens, targets], axis=1)[targets != IGNORED]
    pairs, counts = np.unique(seen, axis=0, return_counts=True)
    order = np.argsort(counts, kind="stable")  # the commonest label of a token is written last, and stays
    answers = np.full(max(int(ids.max()), int(pairs[:, 0].max())) + 1, IGNORED - 1, dtype=np.int64)
    answers[pairs[order, 0]] = pairs[order, 1]
    is_asked = labels != IGNORED
    return float((answers[ids[is_asked]] == labels[is_asked]).mean())
