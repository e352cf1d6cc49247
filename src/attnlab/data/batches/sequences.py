"""Rows of one length from a token file, by number: slices of the stream of all tokens, or one document each.

Any length can be cut from the same file, so segments of 128 and of 512 tokens share one encoding.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError, closest

from ..tokens.tokenfile import TokenFile

RowLayout = Literal["packed", "crops", "padded"]
LAYOUTS: tuple[RowLayout, ...] = ("packed", "crops", "padded")
MULTIPLE = 8
"""Widths cut to the longest row are rounded up to a multiple of this, which makes matrix products faster."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Rows of `length` tokens.

    packed: slices of the stream of documents and separators; each row begins with the tokenizer's prefix, if it has
    one, and only the last row is padded. crops: the same, but a row begins at every token of the stream that has
    enough tokens after it. padded: one document per row between prefix and separator, truncated to `length`.
    """

    file: TokenFile
    length: int
    layout: RowLayout = "packed"
    is_causal: bool = False
    """Whether rows are for a causal model, and begin with a start token, but not with an encoder's [CLS]."""

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            hint = closest(str(self.layout), LAYOUTS) or f"; use one of {', '.join(LAYOUTS)}"
            raise DataError(f"no row layout is named '{self.layout}'{hint}")
        if self.room < 1:
            raise DataError(f"rows of {self.length} tokens leave no room for text; use a larger length")

    @property
    def prefix(self) -> int | None:
        """The first token of every row, if there is one."""
        return self.file.vocabulary.start if self.is_causal else self.file.vocabulary.prefix

    @property
    def room(self) -> int:
        """How many tokens of the file a row holds: its length without prefix and separator."""
        has_prefix = self.prefix is not None
        return self.length - has_prefix - (self.layout == "padded")

    def __len__(self) -> int:
        if self.layout == "padded":
            return self.file.num_documents
        if self.layout == "crops":
            return max(0, self.file.tokens.size - self.room + 1)
        return -(-self.file.tokens.size // self.room)

    @property
    def _step(self) -> int:
        """How many tokens of the stream lie between the beginnings of two rows."""
        return 1 if self.layout == "crops" else self.room

    def widths(self, numbers: ArrayLike) -> Rows:
        """Return how many tokens of these rows are not padding."""
        chosen = self._check(numbers)
        framing = self.length - self.room
        if self.layout == "padded":
            return np.minimum(self.file.spans(chosen)[1], self.room) + framing
        return np.minimum(self.file.tokens.size - chosen * self._step, self.room) + framing

    def batch(self, numbers: ArrayLike, width: int | None = None) -> tuple[Rows, Rows]:
        """Return tokens and attention mask of these rows, [b, length] each, or cut to a smaller width."""
        chosen = self._check(numbers)
        vocabulary = self.file.vocabulary
        ends = self.widths(chosen)
        width = self.length if width is None else width
        columns = np.arange(width)
        mask = columns < ends[:, None]
        has_prefix = self.prefix is not None
        if self.layout == "padded":
            starts, is_text = self.file.spans(chosen)[0], mask & (columns < ends[:, None] - 1)
        else:
            starts, is_text = chosen * self._step, mask
        # Tokens beyond the end of a row are gathered as well, since a gather has one shape, and then replaced.
        places = np.minimum(starts[:, None] + np.maximum(columns - has_prefix, 0), self.file.tokens.size - 1)
        ids = np.where(is_text, self.file.tokens[places], vocabulary.fill).astype(np.int64)
        if vocabulary.separator is not None:
            ids[mask & ~is_text] = vocabulary.separator
        if self.prefix is not None:
            ids[:, 0] = self.prefix
        return ids, mask.astype(np.int64)

    def longest(self, numbers: ArrayLike) -> int:
        """Return the width of the longest of these rows, rounded up, at most the length."""
        return min(-(-int(self.widths(numbers).max()) // MULTIPLE) * MULTIPLE, self.length)

    def _check(self, numbers: ArrayLike) -> Rows:
        chosen = np.atleast_1d(np.asarray(numbers, dtype=np.int64))
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise DataError(f"rows run from 0 to {len(self) - 1}; got {chosen.min()} to {chosen.max()}")
        return chosen
