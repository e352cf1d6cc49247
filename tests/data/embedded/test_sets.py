"""What is embedded needs nothing, is the same for the same name, and is what it says it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attnlab.data import SETS, open_source
from attnlab.errors import DataError


def test_pydoc_is_prose_by_topic_in_two_splits() -> None:
    whole = list(open_source("embedded:pydoc").documents())
    train, dev = (list(open_source("embedded:pydoc", split=split).documents()) for split in ("train", "dev"))
    assert 50_000 < sum(len(text.split()) for text in whole) < 90_000
    assert len(train) + len(dev) == len(whole)
    assert 0.05 < len(dev) / len(whole) < 0.25


@pytest.mark.parametrize("name", SETS)
def test_the_same_name_is_the_same_content_in_another_process(name: str) -> None:
    code = f"from attnlab.data import open_source; print(open_source('embedded:{name}').hash)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == open_source(f"embedded:{name}").hash


@pytest.mark.parametrize("name", ["squad", "boolq", "mqar", "copy", "induction", "averaging", "iid"])
def test_a_seed_and_a_split_are_another_content(name: str) -> None:
    hashes = {
        open_source(f"embedded:{name}").hash,
        open_source(f"embedded:{name}?seed=1").hash,
        open_source(f"embedded:{name}", split="dev").hash,
    }
    assert len(hashes) == 3


def test_answers_stand_where_they_are_said_to() -> None:
    rows = list(open_source("embedded:squad?unanswerable=0.3").rows())
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
            assert row["context"][start : start + len(text)] == text
        assert row["is_impossible"] == (not row["answers"]["text"])
    assert 0.2 < sum(row["is_impossible"] for row in rows) / len(rows) < 0.4
    assert not any(row["is_impossible"] for row in open_source("embedded:squad").rows())


def test_an_unanswerable_question_is_about_what_is_not_told() -> None:
    for row in open_source("embedded:squad?unanswerable=1&people=1").rows():
        if row["is_impossible"] and row["question"].startswith("Where was"):
            assert "born" not in row["context"]
            assert "birthplace" not in row["context"]


def test_a_yes_is_told_and_a_no_is_not() -> None:
    rows = list(open_source("embedded:boolq?examples=400").rows())
    assert len(rows) == 400
    assert 0.55 < sum(row["label"] for row in rows) / 400 < 0.69
    for row in rows:
        year = next((word for word in row["question"].split() if word.strip(",").isdigit()), None)
        if year is not None and row["label"]:
            assert year.strip(",") in row["passage"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("embedded:mqr", "no set is named 'embedded:mqr', did you mean 'mqar'"),
        ("embedded:mqar?pair=3", "has no argument 'pair', did you mean 'pairs'"),
        ("embedded:mqar?pairs=x", "argument 'pairs' needs a whole number, not 'x', for example 4"),
        ("embedded:mqar?pairs=40", "needs pairs between 1 and 31, as there are 31 keys; it got pairs=40"),
        ("embedded:mqar?pairs=30", "needs a length of at least 4·pairs = 120; it got length=64"),
        ("embedded:iid?vocab=1", "needs vocab of at least 4"),
        ("embedded:averaging?marked=64", "needs marked between 1 and 63"),
        ("embedded:boolq?yes=2", "a share of questions lies between 0 and 1"),
        ("embedded:squad?articles=0", "needs counts of at least 1"),
        ("embedded:pydoc?seed=1", "has no argument 'seed'; it takes punctuation, paragraphs"),
    ],
)
def test_a_wrong_name_is_answered_with_what_there_is(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("?", r"\?")):
        open_source(name)


def test_a_split_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="has no split 'test'"):
        open_source("embedded:pydoc", split="test")


def test_a_probe_has_no_documents() -> None:
    with pytest.raises(DataError, match="has token ids and no text"):
        list(open_source("embedded:mqar").documents())


def test_paragraphs_are_documents_of_their_own_each_once_and_none_is_in_both_splits() -> None:
    name = "embedded:pydoc?paragraphs=1"
    train, dev = (list(open_source(name, split=split).documents()) for split in ("train", "dev"))
    assert len(dev) >= 100
    assert len({*train, *dev}) == len(train) + len(dev)
    assert all(len(text.split()) >= 8 and "\n" not in text for text in (*train, *dev))
