"""What batches need to know of a tokenizer: its size, its special tokens, and which pieces continue a word."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORD_STARTS = {"ByteLevel": "Ġ", "Metaspace": "▁"}
"""What the first piece of a word begins with, by the pre-tokenizer."""
ROLES = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Ids of a tokenizer's tokens by what they are for; None where it has none."""

    size: int
    pad: int | None
    mask: int | None
    unknown: int | None
    prefix: int | None
    """What begins a row: [CLS], <s> or START. None where the beginning is told like an end, as by GPT-2."""
    separator: int | None
    """What ends a document: [SEP], </s>, STOP or <|endoftext|>."""
    special: NDArray[np.bool_]
    """By id, whether a token is special."""
    continues: NDArray[np.bool_] | None
    """By id, whether a piece continues the word before it; None where the tokenizer does not tell."""

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
        """Read a tokenizer's vocabulary."""
        tokens = tokenizer.get_vocab()
        content = json.loads(tokenizer.backend_tokenizer.to_str())
        size = max(tokens.values()) + 1
        separator = _first(tokenizer.sep_token_id, tokenizer.eos_token_id)
        prefix = _first(tokenizer.cls_token_id, tokenizer.bos_token_id)
        return cls(
            size=size,
            pad=_first(tokenizer.pad_token_id),
            mask=_first(tokenizer.mask_token_id),
            # Bytes are always known, though byte-level tokenizers name a token for what is not.
            unknown=None if "ByteLevel" in _kinds(content["pre_tokenizer"]) else _first(tokenizer.unk_token_id),
            prefix=None if prefix == separator else prefix,
            separator=separator,
            special=_marked(size, tokenizer.all_special_ids),
            continues=_continuing(content, tokens, size),
        )

    @property
    def fill(self) -> int:
        """What stands where a row has ended: padding, or else the separator, which the attention mask hides."""
        for token in (self.pad, self.separator):
            if token is not None:
                return token
        raise DataError("the tokenizer has no token to pad with or to end a document with; add a pad or an eos token")

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest integers that hold every id."""
        return np.uint16 if self.size <= 1 << 16 else np.uint32


def hash_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """Return a hash of all that decides which ids a text becomes, and of the special tokens."""
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    # Calls of a tokenizer leave their truncation and padding behind in it; they are not what it is.
    content.pop("truncation", None)
    content.pop("padding", None)
    content["roles"] = {role: getattr(tokenizer, f"{role}_token") for role in ROLES}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_belongs(tokenizer: PreTrainedTokenizerFast, config: Any) -> None:
    """Refuse a tokenizer whose size or special tokens are not those of a model's config."""
    config = getattr(config, "config", config)
    room = getattr(config, "vocab_size", None)
    if room is None:
        raise DataError(f"a {type(config).__name__} has no vocab_size, so no tokenizer can be checked against it")
    size = len(tokenizer)
    # Some models round their embeddings up, for speed; anything else is another tokenizer's model.
    is_rounded_up = room % 8 == 0 and 0 <= room - size < 128
    if size != room and not is_rounded_up:
        raise DataError(
            f"the tokenizer has {size:,} tokens and the model's config vocab_size={room:,}: they do not belong "
            "together; load the model's own tokenizer, or build the model with the tokenizer's size"
        )
    for role in ROLES:
        own, expected = getattr(tokenizer, f"{role}_token_id", None), getattr(config, f"{role}_token_id", None)
        if own is not None and expected is not None and own != expected:
            raise DataError(
                f"the tokenizer's {role} token '{getattr(tokenizer, f'{role}_token')}' is {own} and the model's config "
                f"says {role}_token_id={expected}: they do not belong together; load the model's own tokenizer, or "
                f"set {role}_token_id={own}"
            )


def _first(*ids: Any) -> int | None:
    return next((int(token) for token in ids if token is not None), None)


def _marked(size: int, ids: list[int]) -> NDArray[np.bool_]:
    marked = np.zeros(size, dtype=np.bool_)
    marked[ids] = True
    return marked


def _continuing(content: dict[str, Any], tokens: dict[str, int], size: int) -> NDArray[np.bool_] | None:
    model = content["model"]
    if model["type"] == "WordLevel":
        return _marked(size, [])
    if model["type"] == "WordPiece":
        prefix = model["continuing_subword_prefix"]
        return _marked(size, [number for token, number in tokens.items() if token.startswith(prefix)])
    for kind in _kinds(content["pre_tokenizer"]):
        if kind in WORD_STARTS:
            start = WORD_STARTS[kind]
            return _marked(size, [number for token, number in tokens.items() if not token.startswith(start)])
    return None


def _kinds(pre_tokenizer: dict[str, Any] | None) -> list[str]:
    """List the types of a pre-tokenizer and of those it is made of."""
    if pre_tokenizer is None:
        return []
    inner = [kind for part in pre_tokenizer.get("pretokenizers", []) for kind in _kinds(part)]
    return [str(pre_tokenizer["type"]), *inner]
