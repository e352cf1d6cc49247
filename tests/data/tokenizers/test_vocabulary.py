"""Special tokens by role, a hash that identifies a tokenizer, and the check against a model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.data import Vocabulary, check_belongs, hash_tokenizer, load_tokenizer, train_tokenizer
from attnlab.errors import DataError

from .vocabularies import VOCABULARY, write_bytes, write_vocabulary


def test_truncation_left_behind_by_a_call_is_not_part_of_the_hash(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path, VOCABULARY))
    before = hash_tokenizer(tokenizer)
    tokenizer("hello hello", truncation=True, max_length=3, padding="max_length")
    assert hash_tokenizer(tokenizer) == before
    assert hash_tokenizer(load_tokenizer(write_vocabulary(tmp_path, [*VOCABULARY, "x"]))) != before


def test_vocabulary_knows_what_tokens_are_for(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(load_tokenizer(write_vocabulary(tmp_path, VOCABULARY)))
    assert (vocabulary.pad, vocabulary.unknown, vocabulary.prefix, vocabulary.separator, vocabulary.mask) == (
        0,
        1,
        2,
        3,
        4,
    )
    assert vocabulary.continues is not None
    assert vocabulary.continues.nonzero()[0].tolist() == [6, 7]
    gpt2 = Vocabulary.of(load_tokenizer(write_bytes(tmp_path)))
    assert (gpt2.pad, gpt2.unknown, gpt2.prefix, gpt2.separator, gpt2.fill) == (None, None, None, 0, 0)
    words = Vocabulary.of(train_tokenizer(["a b"] * 3, "word"))
    assert (words.prefix, words.separator, words.unknown, words.pad) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"vocab_size": 11}, ""),
        ({"vocab_size": 11, "pad_token_id": 0, "bos_token_id": 7}, ""),
        ({"vocab_size": 16}, ""),
        ({"vocab_size": 10}, "has 11 tokens and the model's config vocab_size=10: they do not belong together"),
        ({"vocab_size": 30522}, "vocab_size=30,522: they do not belong together"),
        ({"vocab_size": 11, "pad_token_id": 1}, r"pad token '\[PAD\]' is 0 and the model's config has pad_token_id=1"),
    ],
)
def test_a_tokenizer_that_does_not_belong_is_refused(tmp_path: Path, config: dict[str, int], message: str) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path, VOCABULARY))
    model = SimpleNamespace(config=SimpleNamespace(**config))
    if not message:
        check_belongs(tokenizer, model)
        return
    with pytest.raises(DataError, match=message):
        check_belongs(tokenizer, model.config)


def test_a_model_of_transformers_is_checked_by_its_config(tmp_path: Path) -> None:
    from transformers import BertConfig, GPT2Config

    tokenizer = load_tokenizer(write_vocabulary(tmp_path, VOCABULARY))
    check_belongs(tokenizer, BertConfig(vocab_size=11))
    with pytest.raises(DataError, match="do not belong together"):
        check_belongs(tokenizer, BertConfig())
    words = train_tokenizer(["a b"] * 3, "word")
    with pytest.raises(DataError, match="eos token '<STOP>' is 1 and the model's config has eos_token_id=2"):
        check_belongs(words, GPT2Config(vocab_size=6, bos_token_id=0, eos_token_id=2))
