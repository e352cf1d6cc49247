"""In-context recall of MAD (Poli et al. 2024, arXiv:2403.17844): repeated key-value pairs, plain, with noise, or fuzzy.

Keys and values alternate, and a key has one value throughout a row. In evaluation rows the value is the label of every
key that occurred before; in training rows every next token is a label, as in MAD. Answers follow their questions in the
input, so only a causal model is tested fairly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..draws import Keys, draw_distinct, draw_integers, draw_uniform, keys_of
from .probe import IGNORED, Needs, Probe, Tokens

Flags = NDArray[np.bool_]


def _shift_left(ids: Tokens) -> Tokens:
    """Return the next token of every position as its label."""
    return np.pad(ids[:, 1:], ((0, 0), (0, 1)), constant_values=IGNORED)


def _occurred_before(codes: Tokens, is_counted: Flags) -> Flags:
    """Return whether each code of a row equals an earlier one that counts: [b, n]."""
    is_equal = (codes[:, :, None] == codes[:, None, :]) & is_counted[:, None, :]
    return np.asarray(np.tril(is_equal, -1).any(axis=2))


@dataclass(frozen=True)
class InContextRecall(Probe):
    """Random pairs of a key and its value; the key of the last pair occurred before.

    Keys are the lower half of the tokens, values the upper half; the value of each key is drawn for every row.
    """

    NAME = "in_context_recall"
    vocab: int = 16
    length: int = 128

    def _get_noise(self) -> tuple[int, float]:
        """Return how many tokens, the last ones, are noise, and the probability that a pair is noise."""
        return 0, 0.0

    def _list_needs(self) -> Needs:
        least = self._get_noise()[0] + 4
        return [
            (self.length % 2 == 0 and self.length >= 4, "an even length of at least 4", "length"),
            (self.vocab >= least, f"a vocab of at least {least}", "vocab"),
        ]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        num_noise, noise_share = self._get_noise()
        num_pairs, num_keys = self.length // 2, (self.vocab - num_noise) // 2
        pair_keys = draw_integers(keys_of(keys, 0), num_pairs, num_keys)
        is_noise = draw_uniform(keys_of(keys, 1), num_pairs) < noise_share
        # One pair besides the last is never noise, so that there is something to recall.
        np.put_along_axis(is_noise, draw_integers(keys_of(keys, 2), 1, num_pairs - 1), False, axis=1)
        is_noise[:, -1] = False
        # The last key is drawn uniformly from the keys that occurred, no matter how often each did.
        priorities = draw_uniform(keys_of(keys, 3), num_keys)
        has_occurred = np.zeros((len(keys), num_keys), dtype=np.bool_)
        rows, places = np.nonzero(~is_noise[:, :-1])
        has_occurred[rows, pair_keys[rows, places]] = True
        pair_keys[:, -1] = np.where(has_occurred, priorities, -1.0).argmax(axis=1)
        value_of_key = num_keys + draw_integers(keys_of(keys, 4), num_keys, self.vocab - num_noise - num_keys)
        values = np.take_along_axis(value_of_key, pair_keys, axis=1)
        ids, labels = self._blank(keys)
        ids[:, 0::2], ids[:, 1::2] = pair_keys, values
        noise = self.vocab - num_noise + draw_integers(keys_of(keys, 5), self.length, max(1, num_noise))
        ids = np.where(np.repeat(is_noise, 2, axis=1), noise, ids)
        if is_training:
            return ids, _shift_left(ids)
        labels[:, 0::2] = np.where(_occurred_before(pair_keys, ~is_noise) & ~is_noise, values, IGNORED)
        return ids, labels


@dataclass(frozen=True)
class NoisyRecall(InContextRecall):
    """In-context recall in which some pairs are replaced by tokens without meaning."""

    NAME = "noisy_recall"
    vocab: int = 32
    noise_vocab: int = 16
    noise: float = 0.2

    def _get_noise(self) -> tuple[int, float]:
        return self.noise_vocab, self.noise

    def _list_needs(self) -> Needs:
        return [
            *super()._list_needs(),
            (self.noise_vocab >= 1, "a noise_vocab of at least 1", "noise_vocab"),
            (0 <= self.noise < 1, "a noise of at least 0 and below 1", "noise"),
        ]


@dataclass(frozen=True)
class FuzzyRecall(Probe):
    """In-context recall of keys and values that are motifs of up to `motif` different tokens each.

    In training rows keys have all sizes, in evaluation rows the largest; values always have all sizes. Rows are padded
    on the left with the last token.
    """

    NAME = "fuzzy_recall"
    vocab: int = 16
    length: int = 128
    motif: int = 3

    @property
    def num_keys(self) -> int:
        """How many tokens keys are made of; as many, or one more, make values."""
        return (self.vocab - 1) // 2

    def _list_needs(self) -> Needs:
        least = 4 * self.motif + 1
        return [
            (self.motif >= 1, "a motif of at least 1", "motif"),
            (self.num_keys >= self.motif, f"a vocab of at least {2 * self.motif + 1}", "vocab"),
            (self.length >= least, f"a length of at least 4·motif + 1 = {least}", "length"),
        ]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Draw motifs, keep as many pairs as fit, repeat one of them, and align the row to the right."""
        most, m = self.length // 2, self.motif
        pair_keys = keys_of(keys[:, None], np.arange(most))
        sizes = 1 + draw_integers(keys_of(pair_keys, 0), 1, m)[..., 0] if is_training else np.full((len(keys), most), m)
        motif_keys = draw_distinct(keys_of(pair_keys, 1), m, self.num_keys)
        motif_keys = np.where(np.arange(m) < sizes[..., None], motif_keys, -1)
        codes = ((motif_keys + 1) * (self.num_keys + 1) ** np.arange(m)).sum(axis=2)
        # The value is drawn from the motif's code, so it is the same at every occurrence in the row.
        value_keys = keys_of(keys[:, None], -1, codes)
        value_sizes = 1 + draw_integers(keys_of(value_keys, 0), 1, m)[..., 0]
        values = self.num_keys + draw_distinct(keys_of(value_keys, 1), m, self.vocab - 1 - self.num_keys)
        values = np.where(np.arange(m) < value_sizes[..., None], values, -1)
        starts = np.cumsum(sizes + value_sizes, axis=1) - sizes - value_sizes
        is_kept = starts < self.length - 4 * m
        # The pair at a random position is repeated at the end.
        place = draw_integers(keys_of(keys, 2), 1, self.length - 4 * m)
        repeated = (is_kept & (starts <= place)).sum(axis=1) - 1
        rows = np.arange(len(keys))
        motifs = np.concatenate([motif_keys, values], axis=2)
        motifs = np.concatenate([np.where(is_kept[..., None], motifs, -1), motifs[rows, repeated][:, None]], axis=1)
        is_known = _occurred_before(codes, is_kept) & is_kept
        is_asked = np.concatenate([is_known, np.ones((len(keys), 1), dtype=np.bool_)], axis=1)
        return self._write(motifs, is_asked, is_training)

    def _write(self, motifs: Tokens, is_asked: Flags, is_training: bool) -> tuple[Tokens, Tokens]:
        """Write the tokens of motifs [b, pairs, 2·motif] one after another, up to the end of the row."""
        b, _, width = motifs.shape
        tokens = motifs.reshape(b, -1)
        is_token = tokens >= 0
        places = np.cumsum(is_token, axis=1) - 1 + self.length - is_token.sum(axis=1, keepdims=True)
        rows = np.broadcast_to(np.arange(b)[:, None], tokens.shape)
        ids = np.full((b, self.length), self.vocab - 1, dtype=np.int64)
        ids[rows[is_token], places[is_token]] = tokens[is_token]
        if is_training:
            return ids, _shift_left(ids)
        is_value = np.arange(width) >= self.motif
        is_labelled = is_token & (is_asked[..., None] & is_value).reshape(b, -1)
        labels = np.full((b, self.length), IGNORED, dtype=np.int64)
        labels[rows[is_labelled], places[is_labelled] - 1] = tokens[is_labelled]
        return ids, labels
