"""The documentation of Python as prose, by topic or by paragraph."""

from __future__ import annotations

from attnlab.data import open_source


def test_pydoc_is_prose_by_topic_in_two_splits() -> None:
    whole = list(open_source("embedded:pydoc").documents())
    train, dev = (list(open_source("embedded:pydoc", split=split).documents()) for split in ("train", "dev"))
    assert 50_000 < sum(len(text.split()) for text in whole) < 90_000
    assert len(train) + len(dev) == len(whole)
    assert 0.05 < len(dev) / len(whole) < 0.25


def test_paragraphs_are_documents_of_their_own_each_once_and_none_is_in_both_splits() -> None:
    name = "embedded:pydoc?paragraphs=1"
    train, dev = (list(open_source(name, split=split).documents()) for split in ("train", "dev"))
    assert len(dev) >= 100
    assert len({*train, *dev}) == len(train) + len(dev)
    assert all(len(text.split()) >= 8 and "\n" not in text for text in (*train, *dev))
