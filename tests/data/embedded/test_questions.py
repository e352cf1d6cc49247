"""Generated questions: answers are spans of the context, and a share is unanswerable or true as requested."""

from __future__ import annotations

from attnlab.data import open_source


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
