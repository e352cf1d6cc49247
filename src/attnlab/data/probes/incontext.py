"""In-context recall of MAD (Poli et al. 2024, arXiv:2403.17844): pairs that come again, plain, in noise, or fuzzy.

Keys and values come in turn, and a key has one value throughout a row. A row that is evaluated asks for the value at
every key that stood before; a row that is trained on asks for every next token, as MAD trains. Answers stand in the
input behind their questions, so only a causal model is asked fairly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..draws import Keys, below, distinct, keys_of, uniform
from .probe import IGNORED, Probe, Tokens

Flags = NDArray[np.bool_]


def next_tokens(ids: Tokens) -> Tokens:
    """Return the label of every position where all are asked: the token behind it."""
    return np.pad(ids[:, 1:], ((0, 0), (0, 1)), constant_values=IGNORED)


def stood_before(codes: Tokens, is_told: Flags) -> Flags:
    """Tell which of a row's codes stand at an earlier place that counts: [b, n]."""
    is_equal = (codes[:, :, None] == codes[:, None, :]) & is_told[:, None, :]
    return np.asarray(np.tril(is_equal, -1).any(axis=2))


@dataclass(frozen=True)
class InContextRecall(Probe):
    """Random pairs of a key and its value, the last of them with a key that stood before.

    Keys are the lower half of the tokens, values the upper half; which value a key has is drawn for every row.
    """

    NAME = "in_context_recall"
    vocab: int = 16
    length: int = 128

    @property
    def num_noise(self) -> int:
        """How many tokens, the last ones, are neither keys nor values."""
        return 0

    @property
    def noise_share(self) -> float:
        """The chance of a pair to be noise."""
        return 0.0

    @property
    def num_keys(self) -> int:
        """How many tokens are keys; as many, or one more, are values."""
        return (self.vocab - self.num_noise) // 2

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for whole pairs, two at least, and for keys and values."""
        return [
            (self.length % 2 == 0 and self.length >= 4, "an even length of at least 4", "length"),
            (self.num_keys >= 2, f"a vocab of at least {self.num_noise + 4}", "vocab"),
        ]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw pairs, replace some by noise, and ask for a known key at the end."""
        num_pairs, num_values = self.length // 2, self.vocab - self.num_noise - self.num_keys
        asked = below(keys_of(keys, 0), num_pairs, self.num_keys)
        is_noise = uniform(keys_of(keys, 1), num_pairs) < self.noise_share
        # One pair besides the last is never noise, so that there is something to recall.
        np.put_along_axis(is_noise, below(keys_of(keys, 2), 1, num_pairs - 1), False, axis=1)
        is_noise[:, -1] = False
        # The last key is one of those that were told, each as likely however often it was.
        chances = uniform(keys_of(keys, 3), self.num_keys)
        is_told = np.zeros((len(keys), self.num_keys), dtype=np.bool_)
        rows, places = np.nonzero(~is_noise[:, :-1])
        is_told[rows, asked[rows, places]] = True
        asked[:, -1] = np.where(is_told, chances, -1.0).argmax(axis=1)
        values = np.take_along_axis(self.num_keys + below(keys_of(keys, 4), self.num_keys, num_values), asked, axis=1)
        ids, labels = self._blank(keys)
        ids[:, 0::2], ids[:, 1::2] = asked, values
        noise = self.vocab - self.num_noise + below(keys_of(keys, 5), self.length, max(1, self.num_noise))
        ids = np.where(np.repeat(is_noise, 2, axis=1), noise, ids)
        if is_training:
            return ids, next_tokens(ids)
        labels[:, 0::2] = np.where(stood_before(asked, ~is_noise) & ~is_noise, values, IGNORED)
        return ids, labels


@dataclass(frozen=True)
class NoisyRecall(InContextRecall):
    """In-context recall in which pairs are replaced by pairs of tokens that mean nothing."""

    NAME = "noisy_recall"
    vocab: int = 32
    noise_vocab: int = 16
    noise: float = 0.2

    @property
    def num_noise(self) -> int:
        """How many tokens, the last ones, are noise."""
        return self.noise_vocab

    @property
    def noise_share(self) -> float:
        """The chance of a pair to be noise."""
        return self.noise

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for tokens that are noise, and a share of them."""
        return [
            *super().needs(),
            (self.noise_vocab >= 1, "a noise_vocab of at least 1", "noise_vocab"),
            (0 <= self.noise < 1, "a noise of at least 0 and below 1", "noise"),
        ]


@dataclass(frozen=True)
class FuzzyRecall(Probe):
    """In-context recall of keys and values that are motifs of up to `motif` different tokens each.

    Keys are of every size where a row is trained on, and of the largest where it is evaluated; values are of every
    size. Rows are filled up on the left with the last token.
    """

    NAME = "fuzzy_recall"
    vocab: int = 16
    length: int = 128
    motif: int = 3

    @property
    def num_keys(self) -> int:
        """How many tokens keys are made of; as many, or one more, make values."""
        return (self.vocab - 1) // 2

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for room for two pairs, and for tokens to make a motif of."""
        least = 4 * self.motif + 1
        return [
            (self.motif >= 1, "a motif of at least 1", "motif"),
            (self.num_keys >= self.motif, f"a vocab of at least {2 * self.motif + 1}", "vocab"),
            (self.length >= least, f"a length of at least 4·motif + 1 = {least}", "length"),
        ]

    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw motifs, keep as many pairs as fit, tell one of them again, and write the row from its end."""
        most, m = self.length // 2, self.motif
        pair_keys = keys_of(keys[:, None], np.arange(most))
        sizes = 1 + below(keys_of(pair_keys, 0), 1, m)[..., 0] if is_training else np.full((len(keys), most), m)
        told = distinct(keys_of(pair_keys, 1), m, self.num_keys)
        told = np.where(np.arange(m) < sizes[..., None], told, -1)
        codes = ((told + 1) * (self.num_keys + 1) ** np.arange(m)).sum(axis=2)
        # A key's value is drawn by the key itself, so that it has the same one wherever it stands in the row.
        value_keys = keys_of(keys[:, None], -1, codes)
        value_sizes = 1 + below(keys_of(value_keys, 0), 1, m)[..., 0]
        values = self.num_keys + distinct(keys_of(value_keys, 1), m, self.vocab - 1 - self.num_keys)
        values = np.where(np.arange(m) < value_sizes[..., None], values, -1)
        starts = np.cumsum(sizes + value_sizes, axis=1) - sizes - value_sizes
        is_kept = starts < self.length - 4 * m
        # The pair told again is the one at a random place.
        place = below(keys_of(keys, 2), 1, self.length - 4 * m)
        again = (is_kept & (starts <= place)).sum(axis=1) - 1
        rows = np.arange(len(keys))
        motifs = np.concatenate([told, values], axis=2)
        motifs = np.concatenate([np.where(is_kept[..., None], motifs, -1), motifs[rows, again][:, None]], axis=1)
        is_known = stood_before(codes, is_kept) & is_kept
        is_asked = np.concatenate([is_known, np.ones((len(keys), 1), dtype=np.bool_)], axis=1)
        return self._write(motifs, is_asked, is_training)

    def _write(self, motifs: Tokens, is_asked: Flags, is_training: bool) -> tuple[Tokens, Tokens]:
        """Write the tokens of motifs [b, pairs, 2·motif] one behind another, up to the end of the row."""
        b, _, width = motifs.shape
        tokens = motifs.reshape(b, -1)
        is_token = tokens >= 0
        places = np.cumsum(is_token, axis=1) - 1 + self.length - is_token.sum(axis=1, keepdims=True)
        rows = np.broadcast_to(np.arange(b)[:, None], tokens.shape)
        ids = np.full((b, self.length), self.vocab - 1, dtype=np.int64)
        ids[rows[is_token], places[is_token]] = tokens[is_token]
        if is_training:
            return ids, next_tokens(ids)
        is_value = np.arange(width) >= self.motif
        is_labelled = is_token & (is_asked[..., None] & is_value).reshape(b, -1)
        labels = np.full((b, self.length), IGNORED, dtype=np.int64)
        labels[rows[is_labelled], places[is_labelled] - 1] = tokens[is_labelled]
        return ids, labels
