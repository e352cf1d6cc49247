"""The null threshold is tuned on one side and used on the other, never on the questions that are scored."""

import math

import pytest

from attnlab.errors import TaskError
from attnlab.tasks import load
from attnlab.tasks.squad import Span, SquadAnswer, SquadQuestion
from attnlab.tasks.squad.threshold import NullThreshold, tune_threshold

from .questions import question


def answered(text: str, lead: float) -> SquadAnswer:
    return SquadAnswer(text, (Span(0.0, 0, len(text), text),), lead)


def held_out() -> tuple[list[SquadQuestion], dict[str, SquadAnswer]]:
    questions = [question("Denver", key="a"), question("Denver", key="b"), question(None, key="c")]
    answers = {"a": answered("Denver", -3.0), "b": answered("Denver", 1.5), "c": answered("Denver", 2.0)}
    return questions, answers


def test_the_threshold_lets_through_what_gains() -> None:
    threshold = tune_threshold(*held_out())
    assert threshold.value == 1.5
    assert threshold.tuned_on == {"a", "b", "c"}


def test_where_answering_never_gains_nothing_is_answered() -> None:
    questions = [question(None, key="a"), question(None, key="b")]
    threshold = tune_threshold(questions, {"a": answered("x", -1.0), "b": answered("x", 1.0)})
    assert threshold.value < -1.0
    assert math.isfinite(threshold.value)


def test_questions_with_one_lead_stand_or_fall_together() -> None:
    questions = [question("Denver", key="a"), question(None, key="b"), question(None, key="c")]
    assert tune_threshold(questions, {key: answered("Denver", 0.5) for key in "abc"}).value < 0.5


def test_scoring_the_questions_it_was_tuned_on_is_refused() -> None:
    questions, answers = held_out()
    task = load("squad_v2").tuned(answers, questions)
    assert task.null_threshold.value == 1.5
    with pytest.raises(TaskError, match=r"test, a: the null threshold 1.5 was tuned on 3 .* held out"):
        task.score(answers, questions)
    fresh = question("Denver", key="z")
    assert task.score({"z": answered("Denver", 0.0)}, [fresh]).value == 100.0


def test_tuning_needs_questions_and_answers() -> None:
    with pytest.raises(TaskError, match="needs questions"):
        tune_threshold([], {})
    with pytest.raises(TaskError, match="test, q1: question 'q1' has no answer to tune"):
        tune_threshold([question("Denver")], {})
    assert NullThreshold().value == 0.0
