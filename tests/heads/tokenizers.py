"""Small tokenizers of the three kinds: word pieces, byte pairs, and one without offsets."""

from __future__ import annotations

from typing import Any

from attnlab.data.tokenizers.builders import build_bpe, build_wordpiece

WORDS = ["the", "cat", "un", "##want", "##ed", "über", ",", "sat", "it", "'", "s"]
TEXT = "The unwanted cat sat, über it's"


def word_pieces() -> Any:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return build_wordpiece({word: number for number, word in enumerate([*specials, *WORDS])}, is_lowercase=False)


def byte_pairs() -> Any:
    tokens = ["<|endoftext|>", "a", "b", "c", "Ġ", "Ċ", "Ã", "¼", "ab", "Ġab", "Ã¼"]
    merges = [("a", "b"), ("Ġ", "ab"), ("Ã", "¼")]
    return build_bpe({token: number for number, token in enumerate(tokens)}, merges)
