"""Masking for masked language modelling (Devlin et al. 2019).

Every draw is a hash of the seed, the epoch, the example and the position, so an example is masked the same way in any
batch, process and order, and differently in each epoch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..draws import Keys, draw_uniform, draw_words, keys_of, name_key
from ..tokenizers.vocabulary import Vocabulary

IGNORED = -100
PURPOSE = name_key("masking")
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Masking:
    """The share of tokens to hide, and the shares of those that become [MASK] or a random token.

    The rest of the hidden tokens stays unchanged but is predicted as well. If the draws of a row hide no token, its
    token, or word, with the smallest draw is hidden.
    """

    share: float = 0.15
    masked: float = 0.8
    random: float = 0.1
    whole_words: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise DataError(f"the share of hidden tokens must be above 0 and at most 1; got {self.share:g}")
        if min(self.masked, self.random) < 0 or self.masked + self.random > 1:
            raise DataError(
                f"masked and random are shares of the hidden tokens, at most 1 together; got {self.masked:g} and "
                f"{self.random:g}"
            )


DEFAULT = Masking()


def example_keys(seed: int, epoch: int, examples: ArrayLike) -> Keys:
    """Return the keys from which the masking of examples is drawn."""
    return np.atleast_1d(keys_of(PURPOSE, seed, epoch, examples))


def mask_tokens(ids: Rows, vocabulary: Vocabulary, keys: Keys, masking: Masking = DEFAULT) -> tuple[Rows, Rows]:
    """Return tokens with some hidden, and labels: the hidden tokens, −100 elsewhere. ids is [b n], keys [b]."""
    if vocabulary.mask is None:
        raise DataError("masking needs a tokenizer with a mask token, such as BERT's; use such a one or train clm")
    width = ids.shape[1]
    may_hide = ~vocabulary.special[ids]
    draws = draw_uniform(keys_of(keys, 0), width)
    if masking.whole_words:
        # All pieces of a word use the draw of its first piece.
        draws = np.take_along_axis(draws, find_word_starts(ids, vocabulary), axis=1)
    draws = np.where(may_hide, draws, np.inf)
    smallest = draws.min(axis=1, keepdims=True)
    hidden = may_hide & ((draws < masking.share) | (draws == smallest))
    replacements = draw_uniform(keys_of(keys, 1), width)
    becomes_mask = hidden & (replacements < masking.masked)
    becomes_random = hidden & ~becomes_mask & (replacements < masking.masked + masking.random)
    out = np.where(becomes_mask, vocabulary.mask, ids)
    rows, columns = np.nonzero(becomes_random)
    ordinary = np.flatnonzero(~vocabulary.special)
    words = draw_words(keys_of(keys, 2), width)[rows, columns]
    out[rows, columns] = ordinary[(words % ordinary.size).astype(np.int64)]
    return out, np.where(hidden, ids, IGNORED)


def find_word_starts(ids: Rows, vocabulary: Vocabulary) -> Rows:
    """Return for each token the position of the first piece of its word."""
    if vocabulary.continues is None:
        raise DataError(
            "whole_words needs a tokenizer that marks where words begin: word pieces, bytes or whole words; this one "
            "does not"
        )
    begins = ~vocabulary.continues[ids] | vocabulary.special[ids]
    begins[:, 0] = True
    # A token after a special token begins a word, even if its piece looks like a continuation.
    begins[:, 1:] |= vocabulary.special[ids[:, :-1]]
    places = np.where(begins, np.arange(ids.shape[1]), 0)
    return np.maximum.accumulate(places, axis=1).astype(np.int64)
