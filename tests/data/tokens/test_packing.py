"""A token file holds exactly what the tokenizer says, whatever the size of batches, and shows when it was damaged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab.data import TokenFile, open_source, pack, train_tokenizer
from attnlab.data.tokens import packing
from attnlab.errors import AttnlabWarning, DataError

from ..writing import write_documents

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = st.text(st.sampled_from("ab \n\t.é日"), max_size=40)


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
    source = write_documents(folder, documents)
    if not expected:
        with pytest.raises(DataError, match="has no document with a token"):
            pack(source, word_pieces, folder / "tokens")
        assert not list(folder.glob("*tokens*"))
        return
    file = pack(source, word_pieces, folder / "tokens")
    assert [file.document(number).tolist() for number in range(file.num_documents)] == expected
    assert file.num_tokens == sum(map(len, expected))
    assert file.num_empty == len(documents) - len(expected)
    assert file.num_unknown == sum(ids.count(1) for ids in expected)


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
    source = write_documents(tmp_path, ["Ada was born.", "Bruno wrote."])
    first = pack(source, word_pieces, progress=lambda *so_far: calls.append(so_far))
    assert calls[-1] == (2, first.num_tokens)
    again = pack(source, word_pieces, progress=lambda *so_far: pytest.fail("packed again"))
    assert again.folder == first.folder
    assert pack(source, word_pieces, cleaning="whitespace").folder != first.folder
    (tmp_path / "other").mkdir()
    same = write_documents(tmp_path / "other", ["Ada was born.", "Bruno wrote."])
    assert pack(same, word_pieces).folder == first.folder


def test_truncation_left_behind_by_a_call_does_not_cut_documents(
    word_pieces: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    word_pieces("a b c", truncation=True, max_length=3)
    file = pack(write_documents(tmp_path, ["Ada was born in Carrow. " * 20]), word_pieces, tmp_path / "tokens")
    assert file.num_tokens > 100


def test_a_damaged_cache_is_made_again_and_said(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    source = write_documents(tmp_path, ["Clara built the mill."])
    file = pack(source, word_pieces)
    (file.folder / "tokens.bin").write_bytes(b"")
    with pytest.warns(AttnlabWarning, match="is damaged"):
        again = pack(source, word_pieces)
    assert again.num_tokens == TokenFile.open(again.folder).num_tokens > 0


def test_a_folder_of_something_else_is_refused(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    pack(write_documents(tmp_path, ["Ada was born."]), word_pieces, tmp_path / "tokens")
    with pytest.raises(DataError, match="already holds tokens of"):
        pack(write_documents(tmp_path, ["Bruno wrote."]), word_pieces, tmp_path / "tokens")
    with pytest.raises(DataError, match="is not a token file: it has no index"):
        pack(write_documents(tmp_path, ["Bruno wrote."]), word_pieces, tmp_path)


def test_nothing_is_left_where_reading_fails(word_pieces: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": ', encoding="utf-8")
    with pytest.raises(DataError, match="line 2: not JSON"):
        pack(open_source(path), word_pieces, tmp_path / "out" / "tokens")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, "a")))  # type: ignore[no-untyped-call]
    with pytest.raises(DataError, match="packing needs a token at the end of documents"):
        pack(write_documents(tmp_path, ["a"]), bare)
