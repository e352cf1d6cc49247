"""Answers are compared as the SQuAD scripts compare them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.tasks.metrics.answers import best_exact, best_f1, exact, f1, keep_golds, normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Denver Broncos.", "denver broncos"),
        ("an apple, a day", "apple day"),
        ("U.S.A.", "usa"),
        ("A.", ""),
        ("theatre", "theatre"),
        ("24–10", "24–10"),
        ("", ""),
        (" \t\n", ""),
        # Punctuation goes before articles do, so what it held apart can become one.
        ("a-n", ""),
        ("İ", "i̇"),
    ],
)
def test_normalising_drops_case_punctuation_articles_and_spaces(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("prediction", "gold", "wanted"),
    [
        ("Denver Broncos", "the Denver Broncos", 1.0),
        ("Denver", "Denver Broncos", 2 / 3),
        ("Denver Denver", "Denver Broncos", 0.5),
        ("Carolina", "Denver Broncos", 0.0),
    ],
)
def test_f1_counts_common_tokens(prediction: str, gold: str, wanted: float) -> None:
    assert f1(prediction, gold) == pytest.approx(wanted, abs=1e-15)


def test_the_versions_differ_on_answers_without_tokens() -> None:
    assert f1("the", "") == 0.0
    assert f1("the", "", empty_agrees=True) == 1.0
    assert f1("the", "x", empty_agrees=True) == 0.0
    assert exact("the", "") == 1


def test_the_best_gold_answer_counts() -> None:
    assert best_exact("four", ["three", "Four!"]) == 1
    assert best_f1("Denver", ["x", "Denver Broncos", "y"]) == pytest.approx(2 / 3)


def test_v2_leaves_gold_answers_out_that_normalise_to_nothing() -> None:
    assert keep_golds(["the", "x"]) == ["x"]
    assert keep_golds(["the"]) == [""]
    assert keep_golds([]) == [""]


@given(st.text(), st.text())
def test_f1_is_symmetric_between_0_and_1_and_1_where_exact(one: str, other: str) -> None:
    score = f1(one, other, empty_agrees=True)
    assert 0 <= score <= 1
    assert score == pytest.approx(f1(other, one, empty_agrees=True), abs=1e-15)
    if exact(one, other):
        assert score == 1.0


@given(st.text())
def test_normalising_leaves_single_spaces_and_no_capitals(text: str) -> None:
    normal = normalise(text)
    assert normal == " ".join(normal.split())
    assert normalise(text.upper().lower()) == normalise(text.upper())
