"""The special tokens of a sequence: the tokenizer's own, or its end token if it adds none.

GPT-2's tokenizer concatenates two texts without a separator. The end token is then added between them and at the end,
where a causal model has seen everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from attnlab.errors import TaskError
from attnlab.special_tokens import SpecialTokens

from .batch import BatchPadding, Tokens, as_tokens


@dataclass(frozen=True)
class Encoded:
    """One sequence of tokens: ids, types, character offsets, and which text each is of (None for special tokens)."""

    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    texts: list[int | None]

    @property
    def inputs(self) -> dict[str, Tokens]:
        """The inputs of a model."""
        return {"input_ids": as_tokens(self.ids), "token_type_ids": as_tokens(self.types)}


@dataclass(frozen=True)
class Frame:
    """The token that represents a whole sequence, and whether the tokenizer adds it by itself."""

    token: int
    is_own: bool
    is_between: bool
    padding: BatchPadding

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Determine the special tokens of a tokenizer by encoding two texts."""
        check_fast(tokenizer)
        padding, first = BatchPadding.of(tokenizer), tokenizer.cls_token_id
        if first is not None and first in tokenizer("a", "b")["input_ids"]:
            return cls(int(first), True, False, padding)
        end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.pad_token_id
        return cls(int(end), False, int(tokenizer.num_special_tokens_to_add(pair=True)) == 0, padding)

    def num_added(self, is_pair: bool) -> int:
        """Return how many tokens are added to those of the tokenizer."""
        return 0 if self.is_own else 1 + (self.is_between and is_pair)

    def find_special_tokens(self, tokenizer: Any) -> SpecialTokens:
        """Return the special tokens of a single text."""
        added = SpecialTokens.of_tokenizer(tokenizer, "as in the texts that its run trained on")
        return added if self.is_own else replace(added, after=(*added.after, self.token))

    def complete(self, encoding: Any) -> Encoded:
        """Return a tokenizer's encoding with the special tokens it lacks."""
        parts = encoding.ids, encoding.type_ids, encoding.offsets, encoding.sequence_ids
        encoded = Encoded(*(list(part) for part in parts))
        if not self.is_own:
            if self.is_between and 1 in encoded.texts:
                self._insert(encoded, encoded.texts.index(1))
            self._insert(encoded, len(encoded.ids))
        return encoded

    def find_position(self, ids: Sequence[int]) -> int:
        """Return the position that represents the whole sequence."""
        return list(ids).index(self.token) if self.is_own else len(ids) - 1

    def _insert(self, encoded: Encoded, position: int) -> None:
        encoded.ids.insert(position, self.token)
        encoded.types.insert(position, encoded.types[position - 1] if position else 0)
        encoded.offsets.insert(position, (0, 0))
        encoded.texts.insert(position, None)


def check_fast(tokenizer: Any) -> None:
    """Raise an error unless a tokenizer has character offsets."""
    if not getattr(tokenizer, "is_fast", False):
        raise TaskError(
            f"a fast tokenizer is needed, which knows the characters of each token, not "
            f"{type(tokenizer).__name__}; attnlab.data.load_tokenizer gives one"
        )
