"""Figures that are known of real corpora; needs ATTNLAB_DATA, a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.data import audit_data, check_belongs, load_tokenizer, open_source, pack, train_tokenizer

FOLDER = Path(os.environ.get("ATTNLAB_DATA") or os.devnull)


def need(name: str) -> Path:
    if not (FOLDER / name).exists():
        pytest.skip(f"ATTNLAB_DATA names no folder that has {name}")
    return FOLDER / name


def test_the_slice_of_one_billion_words_has_its_counts(tmp_path: Path) -> None:
    train = open_source(need("lm1b_class"), split="train")
    tokenizer = train_tokenizer(train, "word", min_count=3)
    assert len(tokenizer) == 26_604
    file = pack(train, tokenizer, tmp_path / "tokens")
    assert (file.num_tokens, file.num_documents) == (1_561_375, 61_530)


@pytest.mark.parametrize(("name", "rows"), [("train-v1.1", 87_599), ("dev-v1.1", 10_570), ("dev-v2.0", 11_873)])
def test_squad_has_its_questions_and_its_answers_stand_where_they_should(name: str, rows: int) -> None:
    source = open_source(need("squad") / f"{name}.json.xz")
    count = 0
    for row in source.rows():
        count += 1
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            assert row["context"][start : start + len(text)] == text
    assert (source.kind, count) == ("squad", rows)


@pytest.mark.parametrize(
    ("task", "split", "columns", "rows"),
    [
        ("SST-2", "train", None, 67_349),
        ("CoLA", "train", ("source", "label", "mark", "sentence"), 8_551),
        ("MRPC", "train", None, 3_668),
        ("STS-B", "dev", None, 1_500),
        ("WNLI", "test", None, 146),
    ],
)
def test_glue_has_its_rows(task: str, split: str, columns: tuple[str, ...] | None, rows: int) -> None:
    assert sum(1 for _ in open_source(need("glue") / task, split=split, columns=columns).rows()) == rows


def test_boolq_shares_passages_between_train_and_validation() -> None:
    boolq = need("boolq")
    train, dev = (open_source(boolq, split=split, column="passage") for split in ("train", "dev"))
    audit = audit_data(train, against=dev)
    assert audit.num_documents == 9_427
    assert audit.overlap is not None
    assert audit.overlap.line_share > 0.25


def test_published_vocabularies_load_whole() -> None:
    folder = need("vocabs")
    from transformers import BertConfig, GPT2Config

    uncased = load_tokenizer(folder / "bert-base-uncased-vocab.txt")
    cased = load_tokenizer(folder / "bert-base-cased-vocab.txt")
    gpt2 = load_tokenizer(folder / "gpt2-vocab.json.gz")
    assert [len(one) for one in (uncased, cased, gpt2)] == [30_522, 28_996, 50_257]
    assert uncased.convert_ids_to_tokens(uncased("Unaffable").input_ids) == ["[CLS]", "una", "##ffa", "##ble", "[SEP]"]
    assert cased.convert_ids_to_tokens(cased("Hello").input_ids) == ["[CLS]", "Hello", "[SEP]"]
    assert gpt2("Hello world").input_ids == [15_496, 995]
    check_belongs(uncased, BertConfig())
    check_belongs(gpt2, GPT2Config())
