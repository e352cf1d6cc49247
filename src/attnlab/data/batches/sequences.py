"""Rows of one length out of a token file, by number: cut from the stream of all tokens, or a document each.

Any length is cut from the same file, so a stage of 128 tokens and one of 512 need no second encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError, closest

from ..tokens.tokenfile import TokenFile

RowLayout = Literal["packed", "padded"]
LAYOUTS: tuple[RowLayout, ...] = ("packed", "padded")
MULTIPLE = 8
"""A width that was cut to the longest row is rounded up to this, as matrix products like it."""
BLOCK = 1 << 16

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Rows of `length` tokens.

    packed: the stream of documents and separators, cut; each row begins with the tokenizer's prefix, where it has
    one, and only the last is padded. padded: one document a row between prefix and separator, cut off at `length`.
    """

    file: TokenFile
    length: int
    layout: RowLayout = "packed"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            known = closest(str(self.layout), LAYOUTS) or f", one of {', '.join(LAYOUTS)} is needed"
            raise DataError(f"rows cannot be laid out as '{self.layout}'{known}")
        if self.room < 1:
            raise DataError(f"rows of {self.length} tokens leave no room for text; give a longer length")

    @property
    def room(self) -> int:
        """How many tokens of the file a row holds: its length without what frames it."""
        has_prefix = self.file.vocabulary.prefix is not None
        return self.length - has_prefix - (self.layout == "padded")

    def __len__(self) -> int:
        if self.layout == "padded":
            return self.file.num_documents
        return -(-self.file.tokens.size // self.room)

    @cached_property
    def num_truncated(self) -> int:
        """How many documents are longer than a row and lose their end; none where documents are packed."""
        if self.layout == "packed":
            return 0
        blocks = (np.arange(start, min(start + BLOCK, len(self))) for start in range(0, len(self), BLOCK))
        return sum(int((self.file.spans(block)[1] > self.room).sum()) for block in blocks)

    def widths(self, numbers: ArrayLike) -> Rows:
        """Return how many tokens of these rows are not padding."""
        chosen = self._check(numbers)
        framing = self.length - self.room
        if self.layout == "padded":
            return np.minimum(self.file.spans(chosen)[1], self.room) + framing
        return np.minimum(self.file.tokens.size - chosen * self.room, self.room) + framing

    def batch(self, numbers: ArrayLike, width: int | None = None) -> tuple[Rows, Rows]:
        """Return tokens and attention mask of these rows, [b, length] each, or cut to a smaller width."""
        chosen = self._check(numbers)
        vocabulary = self.file.vocabulary
        ends = self.widths(chosen)
        width = self.length if width is None else width
        columns = np.arange(width)
        mask = columns < ends[:, None]
        has_prefix = vocabulary.prefix is not None
        if self.layout == "padded":
            starts, is_text = self.file.spans(chosen)[0], mask & (columns < ends[:, None] - 1)
        else:
            starts, is_text = chosen * self.room, mask
        # What lies beyond a row is read too, since a gather has one shape, and is not kept.
        places = np.minimum(starts[:, None] + np.maximum(columns - has_prefix, 0), self.file.tokens.size - 1)
        ids = np.where(is_text, self.file.tokens[places], vocabulary.fill).astype(np.int64)
        if vocabulary.separator is not None:
            ids[mask & ~is_text] = vocabulary.separator
        if vocabulary.prefix is not None:
            ids[:, 0] = vocabulary.prefix
        return ids, mask.astype(np.int64)

    def longest(self, numbers: ArrayLike) -> int:
        """Return the width that holds these rows: the longest of them, rounded up, and never above the length."""
        longest = int(self.widths(numbers).max())
        return min(-(-longest // MULTIPLE) * MULTIPLE, self.length)

    def _check(self, numbers: ArrayLike) -> Rows:
        chosen = np.atleast_1d(np.asarray(numbers, dtype=np.int64))
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise DataError(f"rows run from 0 to {len(self) - 1}; there came {chosen.min()} to {chosen.max()}")
        return chosen
