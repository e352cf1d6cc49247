"""What marks the parts of a sequence: a tokenizer's own special tokens, or its end token where it puts none.

GPT-2's tokenizer runs two texts into one another. Its end token then stands between them and at the end, where a model
that reads forwards has seen everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.errors import TaskError

from .batch import BatchPadding, Tokens, as_tokens


@dataclass(frozen=True)
class Encoded:
    """One sequence of tokens: ids, types, the characters each stands for, and which text it is of (None: neither)."""

    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    texts: list[int | None]

    @property
    def inputs(self) -> dict[str, Tokens]:
        """What a model takes."""
        return {"input_ids": as_tokens(self.ids), "token_type_ids": as_tokens(self.types)}


@dataclass(frozen=True)
class Frame:
    """The token that stands for a whole sequence, and whether a tokenizer needs help to put it there."""

    token: int
    is_own: bool
    is_between: bool
    padding: BatchPadding

    @classmethod
    def of(cls, tokenizer: Any) -> Frame:
        """Find out how a tokenizer marks two texts, by giving it two."""
        check_fast(tokenizer)
        padding, first = BatchPadding.of(tokenizer), tokenizer.cls_token_id
        if first is not None and first in tokenizer("a", "b")["input_ids"]:
            return cls(int(first), True, False, padding)
        end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.pad_token_id
        return cls(int(end), False, int(tokenizer.num_special_tokens_to_add(pair=True)) == 0, padding)

    def num_added(self, is_pair: bool) -> int:
        """Return how many tokens the frame adds to those of the tokenizer."""
        return 0 if self.is_own else 1 + (self.is_between and is_pair)

    def put_around(self, encoding: Any) -> Encoded:
        """Return a tokenizer's encoding with the marks it lacks."""
        parts = encoding.ids, encoding.type_ids, encoding.offsets, encoding.sequence_ids
        encoded = Encoded(*(list(part) for part in parts))
        if not self.is_own:
            if self.is_between and 1 in encoded.texts:
                self._insert(encoded, encoded.texts.index(1))
            self._insert(encoded, len(encoded.ids))
        return encoded

    def where(self, ids: Sequence[int]) -> int:
        """Return the position that stands for the whole sequence."""
        return list(ids).index(self.token) if self.is_own else len(ids) - 1

    def _insert(self, encoded: Encoded, position: int) -> None:
        encoded.ids.insert(position, self.token)
        encoded.types.insert(position, encoded.types[position - 1] if position else 0)
        encoded.offsets.insert(position, (0, 0))
        encoded.texts.insert(position, None)


def check_fast(tokenizer: Any) -> None:
    """Refuse a tokenizer that does not know the characters of each token."""
    if not getattr(tokenizer, "is_fast", False):
        raise TaskError(
            f"a fast tokenizer is needed, which knows the characters of each token, not "
            f"{type(tokenizer).__name__}; attnlab.data.load_tokenizer gives one"
        )
