"""A probe: generated sequences of tokens that test one ability of a mechanism. Each row is a function of its number.

labels[t] is the target of the logits at position t, without a shift, and −100 at positions without a target.
"""

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
Needs = list[tuple[bool, str, str]]
"""Conditions on the sizes: whether one holds, how an error states it, and the field it is about."""
SPLIT_SEEDS = {None: 0, "train": 0, "dev": 1, "test": 2}
BLOCK = 256
"""Rows generated at a time."""


@dataclass(frozen=True)
class Probe(ABC):
    """Rows of `length` tokens below `vocab`. The set has `examples` rows, but `batch` generates any row number."""

    NAME: ClassVar[str] = ""
    IS_POSITIONAL: ClassVar[bool] = False
    """Whether the position of a question determines that of its answer, so that finding it is the task."""
    kind: ClassVar[str] = "tokens"
    splits: ClassVar[tuple[str, ...]] = ("train", "dev", "test")

    vocab: int = 64
    length: int = 64
    examples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"vocab": 4, "length": 3, "examples": 1}
        general = [(getattr(self, name) >= few, f"{name} of at least {few}", name) for name, few in least.items()]
        for is_met, condition, name in (*general, *self._list_needs()):
            if not is_met:
                raise DataError(f"the probe '{self.NAME}' needs {condition}; it got {name}={getattr(self, name)}")

    def batch(self, numbers: ArrayLike, split: str | None = None) -> tuple[Tokens, Tokens]:
        """Return tokens and labels of the rows of these numbers, [b, length] each."""
        keys = keys_of(name_key(self.NAME), self.seed, SPLIT_SEEDS[split], numbers)
        return self._make(np.atleast_1d(keys), is_training=split in (None, "train"))

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield each row as {'input_ids': …, 'labels': …}."""
        for start in range(0, self.examples, BLOCK):
            generated = self.batch(np.arange(start, min(start + BLOCK, self.examples)), split)
            for ids, labels in zip(*generated, strict=True):
                yield {"input_ids": ids.tolist(), "labels": labels.tolist()}

    def _list_needs(self) -> Needs:
        return []

    @abstractmethod
    def _make(self, keys: Keys, *, is_training: bool) -> tuple[Tokens, Tokens]:
        """Return a row of tokens and of labels for each key; some probes label training rows at more positions."""

    def _blank(self, keys: Keys, token: int = 0) -> tuple[Tokens, Tokens]:
        shape = (len(keys), self.length)
        return np.full(shape, token, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)
