"""A tokenizer trained on the same text is the same, in any process, and is found again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from attnlab.data import hash_tokenizer, open_source, train_tokenizer
from attnlab.data.tokenizers.training import Kind
from attnlab.errors import AttnlabWarning, DataError

SOURCE = "embedded:squad?articles=8"


def test_another_process_trains_the_same(tmp_path: Path) -> None:
    code = (
        "from attnlab.data import *\nfor kind, size in (('wordpiece', 400), ('bpe', 400), ('word', None)):\n"
        f"    print(kind, hash_tokenizer(train_tokenizer(open_source('{SOURCE}'), kind, size)))"
    )
    environment = {**os.environ, "ATTNLAB_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    hashes = dict(line.split() for line in done.stdout.splitlines())
    sizes: dict[Kind, int | None] = {"wordpiece": 400, "bpe": 400, "word": None}
    assert hashes == {
        kind: hash_tokenizer(train_tokenizer(open_source(SOURCE), kind, size)) for kind, size in sizes.items()
    }


def test_it_is_found_again_and_not_trained_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    first = train_tokenizer(["a b c"] * 5, "word")
    kept = list(tmp_path.rglob("tokenizer.json"))
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    assert hash_tokenizer(train_tokenizer(["a b c"] * 5, "word")) == hash_tokenizer(first)
    assert kept[0].stat().st_mtime_ns == before
    train_tokenizer(["a b d"] * 5, "word")
    assert len(list(tmp_path.rglob("tokenizer.json"))) == 2
    kept[0].write_text("{", encoding="utf-8")
    with pytest.warns(AttnlabWarning, match=r"tokenizer\.json is not what was written: .* is trained again now"):
        again = train_tokenizer(["a b c"] * 5, "word")
    assert hash_tokenizer(again) == hash_tokenizer(first)


def test_words_are_those_seen_often_enough() -> None:
    texts = ["the cat sat", "the cat\u00a0ran <odd>", "The cat", "the  the\tdog"]
    tokenizer = train_tokenizer(texts, "word", min_count=2)
    counts = Counter(" ".join(texts).split())
    often = {word for word, count in counts.items() if count >= 2}
    assert set(tokenizer.get_vocab()) == often | {"<START>", "<STOP>", "<UNK>", "<PAD>"}
    assert tokenizer.convert_ids_to_tokens(tokenizer("the dog sat cat").input_ids) == [
        "<START>", "the", "<UNK>", "<UNK>", "cat", "<STOP>"
    ]  # fmt: skip
    assert len(train_tokenizer(texts, "word", vocab_size=6, min_count=1)) == 6
    assert "The" not in train_tokenizer(texts, "word", min_count=1, lowercase=True).get_vocab()


def test_characters_are_all_there_is_in_a_text() -> None:
    text = "To be,\nor not…\n\n  é"
    tokenizer = train_tokenizer([text], "char")
    assert set(tokenizer.get_vocab()) == {*text, "<END>", "<UNK>", "<PAD>"}
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert tokenizer("x").input_ids == [tokenizer.unk_token_id]
    assert len(train_tokenizer([text], "char", vocab_size=8)) == 8
    assert "T" not in train_tokenizer([text], "char", lowercase=True).get_vocab()


def test_pieces_cover_the_text_and_round_trip() -> None:
    text = "Viktor Ebner wrote to Nils Petrov in 1701."
    source = open_source(SOURCE)
    pieces, pairs = train_tokenizer(source, "wordpiece", 300), train_tokenizer(source, "bpe", 400)
    assert len(pieces) == 300
    assert len(pairs) == 400
    assert "[UNK]" not in pieces.convert_ids_to_tokens(pieces(text).input_ids)
    assert pairs.decode(pairs(text).input_ids, skip_special_tokens=True) == text
    assert pairs.decode(pairs("日本 €").input_ids, skip_special_tokens=True) == "日本 €"
    assert pieces.convert_ids_to_tokens(pieces("in", "to").input_ids)[0] == "[CLS]"
    assert pieces("in", "to").token_type_ids[-1] == 1


@pytest.mark.parametrize(
    ("kind", "size", "count", "message"),
    [
        ("words", None, None, "did you mean 'word'"),
        ("wordpiece", 3, None, "needs a vocab_size of at least 7; got 3"),
        ("bpe", 100, None, "needs a vocab_size of at least 261"),
        ("word", None, 0, "at least 1; got 0"),
    ],
)
def test_what_cannot_be_trained_is_refused(kind: Kind, size: int | None, count: int | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        train_tokenizer(["a"], kind, size, count)
