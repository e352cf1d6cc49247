"""A tokenizer loads from whatever it is kept in, and one that does not belong to a model is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnlab.data import hash_tokenizer, load_tokenizer
from attnlab.errors import DataError

from .vocabularies import VOCABULARY, write_bytes, write_vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def test_a_plain_vocabulary_is_berts_tokenizer(tmp_path: Path) -> None:
    from transformers import BertTokenizer

    path = write_vocabulary(tmp_path, VOCABULARY)
    own, original = load_tokenizer(path), BertTokenizer(vocab=str(path))
    for text in ("Héllo, unaffable hello", "", "日 e", "x" * 200):
        assert own(text).input_ids == original(text).input_ids
    assert dict(own("hello", "e")) == dict(original("hello", "e"))
    assert own.convert_ids_to_tokens(own("UNAFFABLE").input_ids) == ["[CLS]", "una", "##ffa", "##ble", "[SEP]"]


def test_a_vocabulary_with_capitals_is_not_lowercased(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_vocabulary(tmp_path, [*VOCABULARY, "Hello"]))
    assert tokenizer.convert_ids_to_tokens(tokenizer("Hello hello").input_ids)[1:3] == ["Hello", "hello"]


def test_bytes_need_their_merges_beside_them(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "gpt2-")
    tokenizer = load_tokenizer(path)
    assert tokenizer("ab ab").input_ids == [4, 5]
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|endoftext|>", None)
    (tmp_path / "gpt2-merges.txt").write_text("a b\na b c\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"merges\.txt, line 2: a merge is two pieces"):
        load_tokenizer(path)
    (tmp_path / "gpt2-merges.txt").unlink()
    with pytest.raises(DataError, match=r"needs its merges beside it; there is no merges\.txt"):
        load_tokenizer(path)


def test_a_directory_is_what_it_holds(tmp_path: Path, word_pieces: PreTrainedTokenizerFast) -> None:
    saved, plain, pairs, bare = (tmp_path / name for name in ("saved", "plain", "pairs", "bare"))
    word_pieces.save_pretrained(saved)
    for folder in (plain, pairs, bare):
        folder.mkdir()
    write_vocabulary(plain, VOCABULARY)
    write_bytes(pairs)
    (bare / "tokenizer.json").write_text(word_pieces.backend_tokenizer.to_str(), encoding="utf-8")
    text = "Ada was born in Carrow."
    assert load_tokenizer(saved)(text).input_ids == word_pieces(text).input_ids
    assert load_tokenizer(plain)("hello").input_ids == [2, 8, 3]
    assert load_tokenizer(pairs)("ab").input_ids == [4]
    assert hash_tokenizer(load_tokenizer(bare)) == hash_tokenizer(word_pieces)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no tokenizer: it needs tokenizer\.json, vocab\.txt"):
        load_tokenizer(tmp_path / "empty")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (VOCABULARY[1:], r"is not BERT's vocabulary: it has no \[PAD\]"),
        ([*VOCABULARY, "una"], r"vocab\.txt, line 12: 'una' repeats line 6"),
    ],
)
def test_a_broken_vocabulary_says_where(tmp_path: Path, tokens: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tokenizer(write_vocabulary(tmp_path, tokens))


def test_without_a_network_a_name_says_what_to_give(unreachable_hub: list[bytes]) -> None:
    message = r"from 'no-such-bert': .* The hub cannot be reached .* a vocab\.txt"
    with pytest.raises(DataError, match=message):
        load_tokenizer("no-such-bert")
    assert len(unreachable_hub) == 1
    with pytest.raises(DataError, match=r"there is no .*vocabb\.txt"):
        load_tokenizer("folder/vocabb.txt")
