"""Tokens are named by their part of the text, whatever the vocabulary calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnlab
from attnlab.errors import RequestError
from attnlab.heads.tokens import MAX_TOKENS, find_tokenizer, name_ids, read_tokens
from tests.install.models import build

from .tokenizers import byte_pairs, word_pieces


def test_word_pieces_that_continue_a_word_begin_with_a_hyphen() -> None:
    tokens = read_tokens("the unwanted cat, it's", word_pieces())
    assert tokens.names == ("[CLS]", "the", "un", "-want", "-ed", "cat", ",", "it", "'", "s", "[SEP]")
    assert tokens.inputs["input_ids"].shape == (1, 11)


def test_byte_pairs_are_readable_letters_and_blanks() -> None:
    assert read_tokens("ab abü\nab c", byte_pairs()).names == ("ab", "ab", "-ü", "⏎", "ab", "␣", "c")


def test_tokens_without_their_text_are_named_alike() -> None:
    pieces, pairs = word_pieces(), byte_pairs()
    text = "the unwanted cat, it's"
    assert name_ids(pieces(text)["input_ids"], pieces) == list(read_tokens(text, pieces).names)
    assert name_ids(pairs("ab abü\nab c")["input_ids"], pairs) == ["-ab", "ab", "-ü", "⏎", "-ab", "␣", "-c"]
    assert name_ids([3, 17], None) == ["3", "17"]


def test_a_tokenizer_that_pads_is_told_not_to() -> None:
    tokenizer = word_pieces()
    tokenizer.backend_tokenizer.enable_padding(length=40)
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokens = read_tokens("the unwanted cat", tokenizer)
    assert tokens.names == ("[CLS]", "the", "un", "-want", "-ed", "cat", "[SEP]")
    assert torch.all(tokens.inputs["attention_mask"] == 1)


class Plain:
    """A tokenizer without offsets."""

    def __call__(self, text: str, **options: Any) -> dict[str, torch.Tensor]:
        assert not options["return_offsets_mapping"]
        ids = torch.tensor([[int(word) for word in text.split()]])
        return {"input_ids": ids, "special_tokens_mask": torch.zeros_like(ids)}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"t{number}" for number in ids]


def test_without_offsets_the_vocabulary_names_the_tokens() -> None:
    assert read_tokens("3 1 2", Plain()).names == ("t3", "t1", "t2")


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no tokens"), ("ab" * (MAX_TOKENS + 1), f"more than a picture can show .{MAX_TOKENS}"), (["ab"], "one text")],
)
def test_a_text_that_cannot_be_shown_is_refused(text: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_tokens(text, byte_pairs())


def test_a_tokenizer_without_a_vocabulary_is_not_a_short_text(tmp_path: Path) -> None:
    build("gpt2").save_pretrained(tmp_path)  # for whose folder transformers makes an empty tokenizer
    with pytest.raises(RequestError, match=r"knows no part of the text 'the cat'.*has no vocabulary"):
        read_tokens("the cat", transformers.AutoTokenizer.from_pretrained(tmp_path))


def test_the_tokenizer_of_a_model_is_in_its_folder(tmp_path: Path) -> None:
    model, given = build("bert"), word_pieces()
    assert find_tokenizer(model, given) is given
    with pytest.raises(RequestError, match="does not say where it was loaded from"):
        find_tokenizer(model, None)
    model.save_pretrained(tmp_path)
    model = type(model).from_pretrained(tmp_path)
    with pytest.raises(RequestError, match="knows no part of the text 'the cat'"):
        read_tokens("the cat", find_tokenizer(model, None))
    with pytest.raises(RequestError, match="has no tokenizer"):
        find_tokenizer(model, tmp_path / "nothing")
    given.save_pretrained(tmp_path)
    assert find_tokenizer(model, None).get_vocab() == given.get_vocab()
    assert find_tokenizer(build("bert"), tmp_path).get_vocab() == given.get_vocab()
    folder = tmp_path / "with a mechanism"
    attnlab.save(attnlab.install(model, "cosine | softmax"), folder)
    given.save_pretrained(folder)
    assert find_tokenizer(attnlab.load(folder), None).get_vocab() == given.get_vocab()
