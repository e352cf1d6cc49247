"""The averages of the two official SQuAD scripts, by hand on a few questions."""

import random

import pytest

from attnlab.errors import TaskError
from attnlab.tasks.metrics.squad import find_best_threshold, score_v1, score_v2

GOLDS = {"a": ["Denver Broncos", "the Broncos"], "b": ["24–10"], "c": [], "d": []}
ANSWERS = {"a": "Broncos", "b": "10", "c": "", "d": "something"}


def test_v1_counts_a_missing_prediction_as_wrong() -> None:
    golds = {key: answers for key, answers in GOLDS.items() if answers}
    official = score_v1({**golds, "e": ["x y"]}, {"a": "Denver", "b": "24–10"})
    assert official.figures["exact_match"] == pytest.approx(100 / 3, abs=1e-12)
    assert official.figures["f1"] == pytest.approx(100 * (2 / 3 + 1) / 3, abs=1e-12)
    assert official.figures["total"] == 3
    assert official.exact == {"a": 0.0, "b": 1.0, "e": 0.0}


def test_v2_splits_by_whether_there_is_an_answer() -> None:
    figures = score_v2(GOLDS, ANSWERS).figures
    assert figures == {
        "exact": 50.0, "f1": 50.0, "total": 4,
        "HasAns_exact": 50.0, "HasAns_f1": 50.0, "HasAns_total": 2,
        "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2,
    }  # fmt: skip


def test_a_part_without_questions_has_no_figures() -> None:
    figures = score_v2({"a": ["x"]}, {"a": "x"}).figures
    assert "HasAns_exact" in figures
    assert "NoAns_exact" not in figures


def test_scores_of_having_no_answer_withhold_answers_and_find_the_best_threshold() -> None:
    chances = {"a": 0.1, "b": 0.2, "c": 0.9, "d": 0.8}
    held = score_v2(GOLDS, ANSWERS, chances, threshold=0.5).figures
    assert held["NoAns_exact"] == 100.0
    assert held["exact"] == 75.0
    assert held["best_exact"] == 75.0
    assert held["best_exact_thresh"] == 0.1
    assert score_v2(GOLDS, ANSWERS, chances).figures["exact"] == 50.0


def test_the_best_threshold_is_no_worse_than_any_other() -> None:
    draw = random.Random(0)
    golds = {str(i): ["x"] if draw.random() < 0.5 else [] for i in range(60)}
    answers = {key: draw.choice(["x", "y", ""]) for key in golds}
    chances = {key: draw.random() for key in golds}
    best = score_v2(golds, answers, chances).figures
    for step in range(-1, 100):
        assert score_v2(golds, answers, chances, step / 100).figures["exact"] <= best["best_exact"] + 1e-12
    reached = score_v2(golds, answers, chances, best["best_exact_thresh"]).figures["exact"]
    assert reached == pytest.approx(best["best_exact"], abs=1e-12)


def test_no_answer_at_all_is_the_official_start() -> None:
    assert find_best_threshold({"a": []}, {"a": "x"}, {"a": 0.0}, {"a": 0.3}) == (100.0, 0.0)


def test_what_cannot_be_averaged_is_refused() -> None:
    with pytest.raises(TaskError, match="no question to score"):
        score_v1({}, {})
    with pytest.raises(TaskError, match=r"'c' has no gold answer.*squad_v2"):
        score_v1(GOLDS, ANSWERS)
    with pytest.raises(TaskError, match="1 of 4 questions have no prediction, the first is 'd'"):
        score_v2(GOLDS, {key: ANSWERS[key] for key in "abc"})
    with pytest.raises(TaskError, match="no score of having no answer"):
        score_v2(GOLDS, ANSWERS, {"a": 0.5})
