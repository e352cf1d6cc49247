"""An audit counts what is there, and flags what would ruin a comparison when it is planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnlab.data import audit_data, open_source, train_tokenizer
from attnlab.data.audit.overlap import find_overlap

from ..writing import write_documents

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@pytest.fixture(scope="module")
def prose() -> list[str]:
    return [line for text in open_source("embedded:pydoc").documents() for line in text.split("\n\n") if line.strip()]


def test_counts_are_right(tmp_path: Path, word_pieces: PreTrainedTokenizerFast) -> None:
    audit = audit_data(write_documents(tmp_path, ["Ada was born.", "  ", "Ada was born.", "日"]), word_pieces)
    assert (audit.num_documents, audit.num_empty, audit.num_words, audit.num_duplicates) == (4, 1, 7, 1)
    expected = [len(word_pieces(text, add_special_tokens=False).input_ids) for text in ("Ada was born.", "日")]
    assert audit.lengths.tolist() == [expected[0], expected[0], expected[1]]
    assert audit.num_tokens == 2 * expected[0] + expected[1]
    assert audit.num_unknown == 1
    counts, edges = audit.histogram()
    assert counts.sum() == 3
    assert edges.size == counts.size + 1


def test_sound_prose_raises_no_flag(tmp_path: Path, prose: list[str]) -> None:
    assert audit_data(write_documents(tmp_path, list(dict.fromkeys(prose)))).flags == []


@pytest.mark.parametrize("marks", [".,;:!?", ".", ","])
def test_stripped_punctuation_is_flagged(tmp_path: Path, prose: list[str], marks: str) -> None:
    stripped = [text.translate(str.maketrans("", "", marks)) for text in dict.fromkeys(prose)]
    audit = audit_data(write_documents(tmp_path, stripped))
    assert audit.punctuation.is_stripped
    assert any("Punctuation seems stripped" in flag for flag in audit.flags)


def test_broken_encoding_is_flagged_with_its_place(tmp_path: Path, prose: list[str]) -> None:
    text = "the café’s “naïve” menu — déjà vu"
    misread = text.encode().decode("cp1252", "replace")
    audit = audit_data(write_documents(tmp_path, [*prose[:10], misread, "caf\ufffd", text]))
    assert (audit.encoding.mojibake + audit.encoding.replaced) == 2
    assert "document 11: " in audit.flags[0]


def test_duplicates_and_unknown_tokens_are_flagged(tmp_path: Path, word_pieces: PreTrainedTokenizerFast) -> None:
    audit = audit_data(write_documents(tmp_path, ["日本 語", "日本 語", "a"]), word_pieces)
    assert any("1 of 3 documents" in flag for flag in audit.flags)
    assert any("unknown to the tokenizer" in flag for flag in audit.flags)
    cleaned = audit_data(write_documents(tmp_path, ["日本 語", "日本 語", "a"]), cleaning="duplicates")
    assert (cleaned.num_documents, cleaned.num_duplicates) == (2, 0)
    assert cleaned.removed == [{"step": "duplicates", "documents": 1, "characters": 4}]


def test_bytes_have_no_unknown_tokens(tmp_path: Path) -> None:
    audit = audit_data(write_documents(tmp_path, ["日本"]), train_tokenizer(["a b"], "bpe", 270))
    assert audit.unknown_share is None
    assert audit.num_tokens == 6


def test_overlap_is_measured_by_lines_and_by_runs(tmp_path: Path, prose: list[str]) -> None:
    long = [text for text in dict.fromkeys(prose) if len(text.split()) > 40]
    train, test = (
        write_documents(tmp_path, long[:50]),
        write_documents(tmp_path, [long[3].upper(), *long[60:69]], "b.jsonl"),
    )
    audit = audit_data(train, against=test)
    assert audit.overlap is not None
    assert audit.overlap.line_share < 0.05
    assert 0.02 < audit.overlap.run_share < 0.3
    assert any("seen in training" in flag for flag in audit.flags)
    apart = audit_data(train, against=write_documents(tmp_path, long[60:70], "c.jsonl")).overlap
    assert apart is not None
    assert apart.run_share < audit.overlap.run_share


def test_all_of_a_text_overlaps_with_itself() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    whole = find_overlap([text], [text])
    assert (whole.num_lines, whole.line_share, whole.num_runs, whole.run_share) == (1, 1.0, 2, 1.0)
    assert find_overlap([text], ["something else entirely"]).run_share == 0
    assert find_overlap(["short"], ["short"]).num_runs == 0


def test_a_record_is_plain_data() -> None:
    audit = audit_data(open_source("embedded:squad?articles=2"), against=open_source("embedded:squad?articles=1"))
    record = json.loads(json.dumps(audit.record()))
    assert record["num_documents"] == 10
    assert sum(record["length_histogram"]["counts"]) == 10
    assert record["overlap"]["num_equal_lines"] > 0
    assert record["punctuation"]["marks"]["."] > 0
    assert record["length_quantiles"]["longest"] == int(np.max(audit.lengths))
