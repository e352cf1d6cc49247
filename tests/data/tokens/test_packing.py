"""A token file holds exactly what the tokenizer says, whatever the size of batches, and shows when it was damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.data import Sequences, Source, TokenFile, load_tokenizer, open_source, pack, train_tokenizer
from attnlab.data.tokens import packing
from attnlab.errors import AttnlabWarning, DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = st.text(st.sampled_from("ab \n\t.é日"), max_size=40)


def write(folder: Path, documents: list[str]) -> Source:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps({"text": document}) + "\n" for document in documents), encoding="utf-8")
    return open_source(path)


def unframed(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False).input_ids)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(documents=st.lists(WORDS, min_size=1, max_size=12), batch=st.sampled_from([1, 7, 1000]))
def test_documents_are_what_the_tokenizer_makes_of_them(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    word_pieces: PreTrainedTokenizerFast,
    documents: list[str],
    batch: int,
) -> None:
    folder = tmp_path_factory.mktemp("packing")
    monkeypatch.setattr(packing, "BATCH", batch)
    expected = [ids for document in documents if (ids := unframed(word_pieces, document))]
    source = write(folder, documents)
    if not expected:
        with pytest.raises(DataError, match="has no document with a token in it"):
            pack(source, word_pieces, folder / "tokens")
        assert not list(folder.glob("*tokens*"))
        return
    file = pack(source, word_pieces, folder / "tokens")
    assert [file.document(number).tolist() for number in range(file.num_documents)] == expected
    assert file.num_tokens == sum(map(len, expected))
    assert file.index.num_empty == len(documents) - len(expected)
    assert file.index.num_unknown == sum(ids.count(1) for ids in expected)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "word"])
def test_a_long_document_in_pieces_is_the_same_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, word_pieces: PreTrainedTokenizerFast
) -> None:
    source = open_source("embedded:pydoc", split="dev")
    tokenizer = train_tokenizer(source, kind, None if kind == "word" else 600)  # type: ignore[arg-type]
    whole = pack(source, tokenizer, tmp_path / "whole")
    monkeypatch.setattr(packing, "PIECE", 50)
    pieces = pack(source, tokenizer, tmp_path / "pieces")
    assert len(packing.cut("a few words " * 50)) > 5
    assert (np.asarray(whole.tokens) == np.asarray(pieces.tokens)).all()


def test_it_is_found_again_by_what_it_was_made_of(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    source = write(tmp_path, ["Ada was born.", "Bruno wrote."])
    first = pack(source, word_pieces, progress=lambda *so_far: calls.append(so_far))
    assert calls[-1] == (2, first.num_tokens)
    again = pack(source, word_pieces, progress=lambda *so_far: pytest.fail("packed again"))
    assert again.folder == first.folder
    assert pack(source, word_pieces, cleaning="whitespace").folder != first.folder
    (tmp_path / "other").mkdir()
    same = write(tmp_path / "other", ["Ada was born.", "Bruno wrote."])
    assert pack(same, word_pieces).folder == first.folder


def test_truncation_left_behind_by_a_call_does_not_cut_documents(
    word_pieces: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    word_pieces("a b c", truncation=True, max_length=3)
    file = pack(write(tmp_path, ["Ada was born in Carrow. " * 20]), word_pieces, tmp_path / "tokens")
    assert file.num_tokens > 100


@pytest.mark.parametrize("name", ["tokens.bin", "documents.bin", "tokenizer.json", "index.json"])
def test_damage_is_found(word_pieces: PreTrainedTokenizerFast, tmp_path: Path, name: str) -> None:
    file = pack(write(tmp_path, ["Ada was born.", "Bruno wrote."]), word_pieces, tmp_path / "tokens")
    path = file.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if name != "index.json":
        with pytest.raises(DataError, match=rf"is damaged: {name} is not what was written; delete the folder"):
            TokenFile.open(file.folder)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is damaged"):
        TokenFile.open(file.folder)
    path.unlink()
    with pytest.raises(DataError, match=r"is damaged|is not a token file"):
        TokenFile.open(file.folder)


def test_a_damaged_cache_is_made_again_and_said(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    source = write(tmp_path, ["Clara built the mill."])
    file = pack(source, word_pieces)
    (file.folder / "tokens.bin").write_bytes(b"")
    with pytest.warns(AttnlabWarning, match="is damaged"):
        again = pack(source, word_pieces)
    assert again.num_tokens == TokenFile.open(again.folder).num_tokens > 0


def test_a_folder_of_something_else_is_refused(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    pack(write(tmp_path, ["Ada was born."]), word_pieces, tmp_path / "tokens")
    with pytest.raises(DataError, match="already holds tokens of something else"):
        pack(write(tmp_path, ["Bruno wrote."]), word_pieces, tmp_path / "tokens")
    with pytest.raises(DataError, match="is not a token file: it has no index"):
        pack(write(tmp_path, ["Bruno wrote."]), word_pieces, tmp_path)


def test_nothing_is_left_where_reading_fails(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": ', encoding="utf-8")
    with pytest.raises(DataError, match="line 2: not JSON"):
        pack(open_source(path), word_pieces, tmp_path / "out" / "tokens")
    assert list((tmp_path / "out").iterdir()) == []


def test_large_vocabularies_take_wider_integers(tmp_path: Path) -> None:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*specials, *(f"w{number}" for number in range(70_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    file = pack(write(tmp_path, ["w69999 w3"]), load_tokenizer(tmp_path / "vocab.txt"), tmp_path / "tokens")
    assert file.index.dtype == "uint32"
    assert file.document(0).tolist() == [70_004, 8]


@given(length=st.integers(3, 60))
def test_packed_rows_hold_every_token_once_and_in_order(packed: TokenFile, length: int) -> None:
    rows = Sequences(packed, length)
    ids, mask = rows.batch(np.arange(len(rows)))
    assert (ids[:, 0] == packed.vocabulary.prefix).all()
    assert (mask[:-1] == 1).all()
    assert ids[:, 1:][mask[:, 1:] == 1].tolist() == packed.tokens.tolist()
    assert (ids[mask == 0] == packed.vocabulary.pad).all()


@given(length=st.integers(4, 200))
def test_padded_rows_are_documents_as_the_tokenizer_frames_them(packed: TokenFile, length: int) -> None:
    rows = Sequences(packed, length, "padded")
    ids, mask = rows.batch(np.arange(len(rows)))
    tokenizer = packed.tokenizer
    texts = list(open_source("embedded:squad?articles=8").documents())
    expected = tokenizer(texts, truncation=True, max_length=length, padding="max_length")
    assert ids.tolist() == expected.input_ids
    assert mask.tolist() == expected.attention_mask
    assert rows.num_truncated == sum(len(tokenizer(text).input_ids) > length for text in texts)
    assert rows.widths(np.arange(len(rows))).tolist() == mask.sum(axis=1).tolist()


def test_rows_that_cannot_be_are_refused(packed: TokenFile) -> None:
    with pytest.raises(DataError, match="leave no room for text"):
        Sequences(packed, 2, "padded")
    with pytest.raises(DataError, match="did you mean 'padded'"):
        Sequences(packed, 8, "paded")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="rows run from 0 to"):
        Sequences(packed, 8).batch([10**6])


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")))  # type: ignore[no-untyped-call]
    with pytest.raises(DataError, match="packing needs a token to end documents with"):
        pack(write(tmp_path, ["a"]), bare)
