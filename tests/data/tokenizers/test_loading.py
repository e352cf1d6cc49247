"""A tokenizer loads from whatever it is kept in, and one that does not belong to a model is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from attnlab.data import Vocabulary, check_belongs, hash_tokenizer, load_tokenizer, train_tokenizer
from attnlab.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "una", "##ffa", "##ble", "hello", ",", "e"]
BYTES = {"<|endoftext|>": 0, "a": 1, "b": 2, "Ġ": 3, "ab": 4, "Ġab": 5}
MERGES = "#version: 0.2\na b\nĠ ab\n"


def write_vocabulary(folder: Path, tokens: list[str], name: str = "vocab.txt") -> Path:
    (folder / name).write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return folder / name


def write_bytes(folder: Path, prefix: str = "") -> Path:
    (folder / f"{prefix}vocab.json.gz").write_bytes(gzip.compress(json.dumps(BYTES).encode()))
    (folder / f"{prefix}merges.txt").write_text(MERGES, encoding="utf-8")
    return folder / f"{prefix}vocab.json.gz"


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
        ([*VOCABULARY, "una"], r"vocab\.txt, line 12: 'una' stood in line 6 already"),
    ],
)
def test_a_broken_vocabulary_says_where(tmp_path: Path, tokens: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tokenizer(write_vocabulary(tmp_path, tokens))


def test_without_a_network_a_name_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("attnlab.data.sources.hub.getproxies", dict)
    with pytest.raises(DataError, match=r"cannot fetch the tokenizer 'no-such-bert' .* a vocab\.txt, or a vocab\.json"):
        load_tokenizer("no-such-bert")
    with pytest.raises(DataError, match=r"there is no .*vocabb\.txt"):
        load_tokenizer("folder/vocabb.txt")


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
        ({"vocab_size": 11, "pad_token_id": 1}, r"pad token '\[PAD\]' is 0 and the model's config says pad_token_id=1"),
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
    with pytest.raises(DataError, match="eos token '<STOP>' is 1 and the model's config says eos_token_id=2"):
        check_belongs(words, GPT2Config(vocab_size=6, bos_token_id=0, eos_token_id=2))
