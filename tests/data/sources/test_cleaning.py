"""Each step does one thing, says what it removed, and a line of steps reads as it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data import STEPS, Cleaning
from attnlab.errors import DataError


def clean(steps: str, *documents: str) -> list[str]:
    return list(Cleaning.parse(steps).run(documents)[0])


@pytest.mark.parametrize(
    ("steps", "before", "after"),
    [
        ("unicode", "cafe\u0301 \ufeffa\u00adb\x00\r\nc", "caf\u00e9 ab\nc"),
        ("whitespace", "  a \t b\n\n \u00a0 \nc  ", "a b\nc"),
        ("markup", "<b>a</b> &amp; <!-- no\n -->1 < 2 [[x|y]] '''z''' {{t}}", "a &  1 < 2 y z ".replace("  1", " 1")),
        ("markup", "a <unk> <BR/>b <UNK>", "a <unk> b <UNK>"),
        ("short_lines(words=2)", "one\ntwo words\nx", "two words"),
        ("markup, whitespace", "<p>  a  </p>", "a"),
        ("", " as it is ", " as it is "),
    ],
)
def test_a_step_does_what_it_says(steps: str, before: str, after: str) -> None:
    assert clean(steps, before) == [after]


def test_duplicates_and_documents_without_a_line_go() -> None:
    assert clean("duplicates", "a", "b", "a") == ["a", "b"]
    assert clean("short_lines", "too short", "long enough it is") == ["long enough it is"]


def test_what_was_removed_is_counted() -> None:
    cleaned, removed = Cleaning.parse("whitespace, duplicates").run(["a  b", "a b", "c"])
    assert list(cleaned) == ["a b", "c"]
    assert removed == [
        {"step": "whitespace", "documents": 0, "characters": 1},
        {"step": "duplicates", "documents": 1, "characters": 3},
    ]


@given(st.lists(st.text(), max_size=5), st.lists(st.sampled_from(sorted(STEPS)), max_size=5))
def test_cleaning_is_deterministic_and_counts_add_up(documents: list[str], steps: list[str]) -> None:
    cleaning = Cleaning.parse(",".join(steps))
    (cleaned, removed), (again, _) = cleaning.run(documents), cleaning.run(documents)
    kept = list(cleaned)
    assert kept == list(again)
    assert len(kept) == len(documents) - sum(step["documents"] for step in removed)
    assert sum(map(len, kept)) == sum(map(len, documents)) - sum(step["characters"] for step in removed)


def test_a_line_of_steps_reads_as_it_is_written() -> None:
    line = "unicode, short_lines(words=4), duplicates"
    assert str(Cleaning.parse(line)) == line
    assert Cleaning.parse(str(Cleaning.parse("unicode,duplicates"))) == Cleaning.parse("unicode , duplicates")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("unicod", "no cleaning step is named 'unicod', did you mean 'unicode'"),
        ("short_lines(word=3)", "has no argument 'word', did you mean 'words'"),
        ("short_lines(words=many)", "needs a whole number, not 'many'"),
        ("unicode(x=1)", "has no argument 'x'; it takes none"),
    ],
)
def test_a_slip_is_answered(steps: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Cleaning.parse(steps)
