"""Copying: repeat all tokens in order, or only those among blanks."""

from dataclasses import dataclass

import numpy as np

from ..draws import Keys, draw_integers, keys_of
from .probe import Needs, Probe, Tokens


@dataclass(frozen=True)
class Copy(Probe):
    """Random tokens, a mark (1), then the tokens again in order (Jelassi et al. 2024, arXiv:2402.01032).

    With blanks, the second half of the input is blank (0), and only the position determines which token comes next.
    Without, it shows the copy so far, as a language model writes it: the label at t is the input at t + 1, so only a
    causal model is tested fairly.
    """

    NAME = "copy"
    IS_POSITIONAL = True
    blanks: int = 1

    def _list_needs(self) -> Needs:
        return [(self.blanks in (0, 1), "blanks of 0 or 1", "blanks")]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, labels = self._blank(keys)
        count = (self.length - 1) // 2
        copied = 2 + draw_integers(keys, count, self.vocab - 2)
        ids[:, :count], ids[:, count] = copied, 1
        if self.blanks:
            labels[:, count + 1 : 2 * count + 1] = copied
        else:
            ids[:, count + 1 : 2 * count + 1] = copied
            labels[:, count : 2 * count] = copied
        return ids, labels


@dataclass(frozen=True)
class SelectiveCopying(Probe):
    """Tokens among blanks, a mark, then blanks whose labels are the tokens in order.

    From MAD (Poli et al. 2024, arXiv:2403.17844). The highest token id is the mark, the one below it the blank. Each
    blank is placed before a randomly chosen token, so the gaps between tokens vary.
    """

    NAME = "selective_copying"
    vocab: int = 16
    length: int = 256
    copied: int = 16

    def _list_needs(self) -> Needs:
        least = 2 * self.copied + 1
        return [
            (self.copied >= 1, "at least 1 token to be copied", "copied"),
            (self.length >= least, f"a length of at least 2·copied + 1 = {least}", "length"),
        ]

    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        ids, labels = self._blank(keys, self.vocab - 2)
        tokens = draw_integers(keys_of(keys, 0), self.copied, self.vocab - 2)
        num_blanks = self.length - 2 * self.copied - 1
        followed_by = draw_integers(keys_of(keys, 1), num_blanks, self.copied)
        order = np.arange(self.copied)
        places = order + (followed_by[:, :, None] <= order).sum(axis=1)
        np.put_along_axis(ids, places, tokens, axis=1)
        ids[:, self.length - self.copied - 1] = self.vocab - 1
        labels[:, self.length - self.copied :] = tokens
        return ids, labels
