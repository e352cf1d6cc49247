"""Tokenizers built from a vocabulary frame texts like the models they are named after."""

import json
from pathlib import Path

import pytest

from attnlab.data.tokenizers.builders import (
    BERT,
    GPT2,
    ROBERTA,
    WORDS,
    build_bpe,
    build_wordpiece,
    build_words,
    find_roles,
    parse_backend,
)  # fmt: skip
from attnlab.errors import DataError


def number(*tokens: str) -> dict[str, int]:
    return {token: place for place, token in enumerate(dict.fromkeys(tokens))}


def test_bert_marks_two_texts() -> None:
    encoded = build_wordpiece(number(*BERT.values(), "a", "b"), is_lowercase=True)("A", "b")
    assert encoded.input_ids == [2, 5, 3, 6, 3]
    assert encoded.token_type_ids == [0, 0, 0, 1, 1]


def test_bytes_are_framed_as_roberta_or_not_at_all() -> None:
    roberta = build_bpe(number(*ROBERTA.values(), "a", "b", "ab"), [("a", "b")])
    assert roberta.convert_ids_to_tokens(roberta("ab", "a").input_ids) == ["<s>", "ab", "</s>", "</s>", "a", "</s>"]
    gpt2 = build_bpe(number(*GPT2.values(), "a", "b", "ab"), [("a", "b")])
    assert gpt2.convert_ids_to_tokens(gpt2("aba").input_ids) == ["ab", "a"]
    with pytest.raises(DataError, match=r"needs <\|endoftext\|>, as in GPT-2, or <s>.* this one has neither"):
        build_bpe(number("a", "b"), [])


@pytest.mark.parametrize("is_lowercase", [False, True])
def test_words_are_split_at_white_space(is_lowercase: bool) -> None:
    tokenizer = build_words(number(*WORDS.values(), "a", "a."), is_lowercase)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("a  A\ta.").input_ids)
    assert tokens == ["<START>", "a", "a" if is_lowercase else "<UNK>", "a.", "<STOP>"]


def test_special_tokens_of_known_tokenizers_are_recognised() -> None:
    added = [{"content": token} for token in BERT.values()]
    assert find_roles({"added_tokens": added}) == BERT
    assert find_roles({"added_tokens": added[1:]}) == {}
    assert find_roles({}) == {}


def test_a_tokenizer_json_that_is_not_one_names_the_file() -> None:
    with pytest.raises(DataError, match=r"a/tokenizer\.json is not a valid tokenizer\.json"):
        parse_backend(json.dumps({"model": {}}), Path("a/tokenizer.json"))
