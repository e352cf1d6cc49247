"""The vocabulary of a tokenizer as batches need it: size, special tokens, and pieces that continue a word."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import DataError

from .builders import FastTokenizer

WORD_STARTS = {"ByteLevel": "Ġ", "Metaspace": "▁"}
"""The prefix of the first piece of a word, by pre-tokenizer."""
ROLES = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Ids of a tokenizer's special tokens by role; None if it has none."""

    size: int
    pad: int | None
    mask: int | None
    unknown: int | None
    prefix: int | None
    """The first token of a row: [CLS], <s> or START. None if it is the same as the separator, as in GPT-2."""
    start: int | None
    """The same without [CLS], which is an encoder's: what a row of a causal model begins with, <s> or START."""
    separator: int | None
    """The token after a document: [SEP], </s>, STOP or <|endoftext|>."""
    special: NDArray[np.bool_]
    """By id, whether a token is special."""
    continues: NDArray[np.bool_] | None
    """By id, whether a piece continues the word before it; None if the tokenizer does not mark it."""

    @classmethod
    def of(cls, tokenizer: FastTokenizer) -> Self:
        """Return the vocabulary of a tokenizer."""
        tokens = tokenizer.get_vocab()
        content = json.loads(tokenizer.backend_tokenizer.to_str())
        size = max(tokens.values()) + 1
        separator = _first(tokenizer.sep_token_id, tokenizer.eos_token_id)
        prefix = _first(tokenizer.cls_token_id, tokenizer.bos_token_id)
        return cls(
            size=size,
            pad=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            # Bytes are always known, although byte-level tokenizers name an unknown token.
            unknown=None if "ByteLevel" in _list_types(content["pre_tokenizer"]) else tokenizer.unk_token_id,
            prefix=None if prefix == separator else prefix,
            start=None if tokenizer.bos_token_id == separator else tokenizer.bos_token_id,
            separator=separator,
            special=_flag_ids(size, tokenizer.all_special_ids),
            continues=_find_continuing(content, tokens, size),
        )

    @property
    def fill(self) -> int:
        """The token after the end of a row: padding, or else the separator, hidden by the attention mask."""
        token = _first(self.pad, self.separator)
        if token is None:
            raise DataError("the tokenizer has no token for padding or the end of a document; add a pad or eos token")
        return token

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest integer type for all ids."""
        return np.uint16 if self.size <= 1 << 16 else np.uint32


def hash_tokenizer(tokenizer: FastTokenizer) -> str:
    """Return a hash of everything that determines the ids of a text, and of the special tokens."""
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    # Calls of a tokenizer store their truncation and padding in it, which do not identify it.
    content.pop("truncation", None)
    content.pop("padding", None)
    content["roles"] = {role: getattr(tokenizer, f"{role}_token") for role in ROLES}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_belongs(tokenizer: FastTokenizer, config: Any) -> None:
    """Raise an error if the size or the special tokens of a tokenizer differ from those of a model's config."""
    config = getattr(config, "config", config)
    vocab_size = getattr(config, "vocab_size", None)
    if vocab_size is None:
        raise DataError(f"a {type(config).__name__} has no vocab_size, so no tokenizer can be checked against it")
    size = len(tokenizer)
    # Some models round their embeddings up, for speed; any other difference means another tokenizer.
    is_rounded_up = vocab_size % 8 == 0 and 0 <= vocab_size - size < 128
    if size != vocab_size and not is_rounded_up:
        raise DataError(
            f"the tokenizer has {size:,} tokens and the model's config vocab_size={vocab_size:,}: they do not belong "
            "together; load the model's own tokenizer, or build the model with the tokenizer's size"
        )
    for role in ROLES:
        actual, expected = getattr(tokenizer, f"{role}_token_id", None), getattr(config, f"{role}_token_id", None)
        if actual is not None and expected is not None and actual != expected:
            raise DataError(
                f"the tokenizer's {role} token '{getattr(tokenizer, f'{role}_token')}' is {actual} and the model's "
                f"config has {role}_token_id={expected}: they do not belong together; load the model's own tokenizer, "
                f"or set {role}_token_id={actual}"
            )


def _first(*ids: int | None) -> int | None:
    return next((token for token in ids if token is not None), None)


def _flag_ids(size: int, ids: list[int]) -> NDArray[np.bool_]:
    flags = np.zeros(size, dtype=np.bool_)
    flags[ids] = True
    return flags


def _find_continuing(content: dict[str, Any], tokens: dict[str, int], size: int) -> NDArray[np.bool_] | None:
    model = content["model"]
    if model["type"] == "WordLevel":
        return _flag_ids(size, [])
    if model["type"] == "WordPiece":
        prefix = model["continuing_subword_prefix"]
        return _flag_ids(size, [number for token, number in tokens.items() if token.startswith(prefix)])
    for name in _list_types(content["pre_tokenizer"]):
        if start := WORD_STARTS.get(name):
            return _flag_ids(size, [number for token, number in tokens.items() if not token.startswith(start)])
    return None


def _list_types(pre_tokenizer: dict[str, Any] | None) -> list[str]:
    """Return the types of a pre-tokenizer and of its parts."""
    if pre_tokenizer is None:
        return []
    inner = [name for part in pre_tokenizer.get("pretokenizers", []) for name in _list_types(part)]
    return [str(pre_tokenizer["type"]), *inner]
