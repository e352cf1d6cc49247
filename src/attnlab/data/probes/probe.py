"""What a probe is: generated tokens that ask one sharp question of a mechanism, each row a function of its number.

labels[t] is what the logits at t should say, without a shift, and −100 where nothing is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..draws import Keys, keys_of, name_key
from ..sources.rows import Row

IGNORED = -100
Tokens = NDArray[np.int64]
SPLIT_SEEDS = {None: 0, "train": 0, "dev": 1, "test": 2}
TRAINING = (None, "train")
"""Splits that are trained on."""
BLOCK = 256
"""How many rows are made at a time where all are wanted."""


@dataclass(frozen=True)
class Probe(ABC):
    """Rows of `length` tokens below `vocab`; `examples` of them make the set, but any number can be asked for."""

    NAME: ClassVar[str] = ""
    IS_POSITIONAL: ClassVar[bool] = False
    """Whether the place of a question says where its answer stands, so that knowing it is what is asked."""

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
        return self.make(np.atleast_1d(keys), is_training=split in TRAINING)

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
    def make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Make a row of tokens and of labels for each key; some probes ask more of a row that is trained on."""

    def _blank(self, keys: Keys, token: int = 0) -> tuple[Tokens, Tokens]:
        shape = (len(keys), self.length)
        return np.full(shape, token, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)
