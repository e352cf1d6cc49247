"""Masked language modelling: which tokens are hidden, and what stands in their place (Devlin et al. 2019).

Every draw is a hash of the seed, the epoch, the example and the place in it, so an example is masked alike in any
batch, process and order, and anew each epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..draws import Keys, keys_of, name_key, uniform, words
from ..tokenizers.vocabulary import Vocabulary

IGNORED = -100
PURPOSE = name_key("masking")
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Masking:
    """Which share of the tokens is hidden; of those, which share becomes [MASK] and which a random token.

    The rest stays as it is, and is to be said all the same. A row of which the draws hide nothing hides the token,
    or word, that came closest.
    """

    share: float = 0.15
    masked: float = 0.8
    random: float = 0.1
    whole_words: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise DataError(f"the share of hidden tokens lies above 0 and is at most 1; it got {self.share:g}")
        if min(self.masked, self.random) < 0 or self.masked + self.random > 1:
            raise DataError(
                f"of the hidden tokens, masked and random are shares of at most 1 together; they got {self.masked:g} "
                f"and {self.random:g}"
            )


DEFAULT = Masking()


def example_keys(seed: int, epoch: int, examples: ArrayLike) -> Keys:
    """Return what the draws of examples are made of."""
    return np.atleast_1d(keys_of(PURPOSE, seed, epoch, examples))


def mask_tokens(ids: Rows, vocabulary: Vocabulary, keys: Keys, masking: Masking = DEFAULT) -> tuple[Rows, Rows]:
    """Return tokens with some hidden, and labels: the hidden tokens, −100 elsewhere. ids is [b n], keys [b]."""
    if vocabulary.mask is None:
        raise DataError("masking needs a tokenizer with a mask token, such as BERT's; this one has none: train clm")
    width = ids.shape[1]
    may_hide = ~vocabulary.special[ids]
    draws = uniform(keys_of(keys, 0), width)
    if masking.whole_words:
        # A word's pieces share the draw of its first one.
        draws = np.take_along_axis(draws, word_starts(ids, vocabulary), axis=1)
    draws = np.where(may_hide, draws, np.inf)
    nearest = draws.min(axis=1, keepdims=True)
    hidden = may_hide & ((draws < masking.share) | (draws == nearest))
    fates = uniform(keys_of(keys, 1), width)
    becomes_mask = hidden & (fates < masking.masked)
    becomes_random = hidden & ~becomes_mask & (fates < masking.masked + masking.random)
    out = np.where(becomes_mask, vocabulary.mask, ids)
    rows, columns = np.nonzero(becomes_random)
    ordinary = np.flatnonzero(~vocabulary.special)
    out[rows, columns] = ordinary[(words(keys_of(keys, 2), width)[rows, columns] % ordinary.size).astype(np.int64)]
    return out, np.where(hidden, ids, IGNORED)


def word_starts(ids: Rows, vocabulary: Vocabulary) -> Rows:
    """Return for each token the place of the first piece of its word."""
    if vocabulary.continues is None:
        raise DataError(
            "whole_words needs a tokenizer that tells where words begin: word pieces, bytes or whole words; this one "
            "does not"
        )
    begins = ~vocabulary.continues[ids] | vocabulary.special[ids]
    begins[:, 0] = True
    # What follows a special token begins a word, even where its piece looks like a continuation.
    begins[:, 1:] |= vocabulary.special[ids[:, :-1]]
    places = np.where(begins, np.arange(ids.shape[1]), 0)
    return np.maximum.accumulate(places, axis=1).astype(np.int64)
