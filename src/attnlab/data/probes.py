"""Probes: generated tokens that ask one sharp question of a mechanism, each row a function of seed and number.

labels[t] is what the logits at t should say, without a shift, and −100 where nothing is asked. The answer is
never in the input at or after its question (i.i.d. tokens aside), so that a model that sees everything is asked as
fairly as a causal one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from .draws import Keys, below, keys_of, name_key, permutations, uniform
from .rows import Row

IGNORED = -100
Tokens = NDArray[np.int64]
SPLIT_SEEDS = {None: 0, "train": 0, "dev": 1, "test": 2}
BLOCK = 256
"""How many rows are made at a time where all are wanted."""


@dataclass(frozen=True)
class Probe(ABC):
    """Rows of `length` tokens below `vocab`; `examples` of them make the set, but any number can be asked for."""

    NAME: ClassVar[str] = ""

    vocab: int = 64
    length: int = 64
    examples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"vocab": 4, "length": 3, "examples": 1}
        general = [(getattr(self, what) >= few, f"{what} of at least {few}", what) for what, few in least.items()]
        for is_met, wanted, what in (*general, *self.needs()):
            if not is_met:
                raise DataError(f"the probe '{self.NAME}' needs {wanted}; it got {what}={getattr(self, what)}")

    @property
    def kind(self) -> str:
        """Rows of token ids and labels, without text."""
        return "tokens"

    @property
    def splits(self) -> tuple[str, ...]:
        """Sets of the same kind that share no row but by chance."""
        return ("train", "dev", "test")

    def batch(self, numbers: ArrayLike, split: str | None = None) -> tuple[Tokens, Tokens]:
        """Return tokens and labels of the rows of these numbers, [b, length] each."""
        keys = keys_of(name_key(self.NAME), self.seed, SPLIT_SEEDS[split], numbers)
        return self.make(np.atleast_1d(keys))

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield each row as {'input_ids': …, 'labels': …}."""
        for start in range(0, self.examples, BLOCK):
            made = self.batch(np.arange(start, min(start + BLOCK, self.examples)), split)
            for ids, labels in zip(*made, strict=True):
                yield {"input_ids": ids.tolist(), "labels": labels.tolist()}

    def needs(self) -> list[tuple[bool, str, str]]:
        """List what the sizes must keep besides: whether they do, in words, and which one it is about."""
        return []

    @abstractmethod
    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Make a row of tokens and of labels for each key."""

    def _blank(self, keys: Keys, token: int = 0) -> tuple[Tokens, Tokens]:
        shape = (len(keys), self.length)
        return np.full(shape, token, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)


@dataclass(frozen=True)
class Recall(Probe):
    """MQAR, recall of many key-value pairs (Arora et al. 2023): pairs first, then their keys at random places.

    Token 0 fills the rest; keys are the lower half of the others, values the upper half. At a key that comes
    again the label is its value.
    """

    NAME = "mqar"
    pairs: int = 8

    @property
    def num_keys(self) -> int:
        """How many tokens are keys; as many are values."""
        return (self.vocab - 1) // 2

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for a key and three places for each pair."""
        most = self.num_keys
        return [
            (1 <= self.pairs <= most, f"pairs between 1 and {most}, as there are {most} keys", "pairs"),
            (3 * self.pairs <= self.length, f"a length of at least 3·pairs = {3 * self.pairs}", "length"),
        ]

    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Write the pairs, then each key once more."""
        ids, labels = self._blank(keys)
        asked = 1 + permutations(keys_of(keys, 0), self.num_keys)[:, : self.pairs]
        values = 1 + self.num_keys + below(keys_of(keys, 1), self.pairs, self.num_keys)
        ids[:, 0 : 2 * self.pairs : 2], ids[:, 1 : 2 * self.pairs : 2] = asked, values
        places = 2 * self.pairs + permutations(keys_of(keys, 2), self.length - 2 * self.pairs)[:, : self.pairs]
        np.put_along_axis(ids, places, asked, axis=1)
        np.put_along_axis(labels, places, values, axis=1)
        return ids, labels


@dataclass(frozen=True)
class Copy(Probe):
    """Copy: random tokens, a mark (1), then blanks (0) at which the tokens are to be said again in order."""

    NAME = "copy"

    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Write what is to be copied, the mark, and blanks."""
        ids, labels = self._blank(keys)
        count = (self.length - 1) // 2
        copied = 2 + below(keys, count, self.vocab - 2)
        ids[:, :count], ids[:, count] = copied, 1
        labels[:, count + 1 : 2 * count + 1] = copied
        return ids, labels


@dataclass(frozen=True)
class Induction(Probe):
    """Induction (Olsson et al. 2022): the last token stood once before; say what followed it there."""

    NAME = "induction"

    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Write tokens other than the trigger, then the trigger at one place and at the end."""
        ids, labels = self._blank(keys)
        trigger = below(keys_of(keys, 0), 1, self.vocab)
        # One of the other tokens, each as likely: the trigger itself is stepped over.
        others = below(keys_of(keys, 1), self.length, self.vocab - 1)
        ids[:] = others + (others >= trigger)
        place = below(keys_of(keys, 2), 1, self.length - 2)
        np.put_along_axis(ids, place, trigger, axis=1)
        ids[:, -1:] = trigger
        labels[:, -1:] = np.take_along_axis(ids, place + 1, axis=1)
        return ids, labels


@dataclass(frozen=True)
class Averaging(Probe):
    """Selective averaging: some numbers are marked; the last token asks for the mean of those alone.

    Token 0 asks; 1 … levels are plain numbers, the next `levels` tokens the same numbers marked. The label is the
    plain number nearest to the mean, half-way ones upwards.
    """

    NAME = "averaging"
    marked: int = 4

    @property
    def levels(self) -> int:
        """How many numbers there are."""
        return (self.vocab - 1) // 2

    def needs(self) -> list[tuple[bool, str, str]]:
        """Ask for a place for each marked number."""
        return [(1 <= self.marked < self.length, f"marked between 1 and {self.length - 1}", "marked")]

    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Write numbers, mark some, and ask."""
        ids, labels = self._blank(keys)
        numbers = below(keys_of(keys, 0), self.length - 1, self.levels)
        places = permutations(keys_of(keys, 1), self.length - 1)[:, : self.marked]
        chosen = np.take_along_axis(numbers, places, axis=1)
        ids[:, :-1] = 1 + numbers
        np.put_along_axis(ids, places, 1 + self.levels + chosen, axis=1)
        labels[:, -1] = 1 + (2 * chosen.sum(axis=1) + self.marked) // (2 * self.marked)
        return ids, labels


@dataclass(frozen=True)
class Independent(Probe):
    """I.i.d. tokens: each label is the next token, which nothing can predict. A causal model below ln V cheats."""

    NAME = "iid"

    def make(self, keys: Keys) -> tuple[Tokens, Tokens]:
        """Draw uniform tokens."""
        ids, labels = self._blank(keys)
        ids[:] = (uniform(keys, self.length) * self.vocab).astype(np.int64)
        labels[:, :-1] = ids[:, 1:]
        return ids, labels


PROBES: Mapping[str, type[Probe]] = {kind.NAME: kind for kind in (Recall, Copy, Induction, Averaging, Independent)}
