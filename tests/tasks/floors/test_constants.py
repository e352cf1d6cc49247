"""The best constant answer: one class for every text, or the first words of every paragraph."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from attnlab.tasks import LabelledText, load
from attnlab.tasks.squad import SquadQuestion


def labelled(*labels: int | float) -> SimpleNamespace:
    """Return labelled texts."""
    texts = [LabelledText(str(at), "text", None, label, f"row {at}") for at, label in enumerate(labels)]
    return SimpleNamespace(examples=texts)


def test_classes_have_the_best_constant_answer() -> None:
    majority = load("sst2").floor(labelled(0, 0, 0, 1))
    assert (majority.value, majority.strategy) == (0.75, "always '0'")
    positive = load("mrpc").floor(labelled(0, 0, 0, 1))
    assert (positive.value, positive.strategy) == (pytest.approx(2 * 1 / 5), "always '1'")
    assert load("cola").floor(labelled(0, 0, 0, 1)).value == 0
    assert load("stsb").floor(labelled(1.0, 2.0)).value == 0
    assert load("boolq").floor(labelled(1, 1, 0)).strategy == "always 'true'"


def test_questions_have_the_first_words_of_their_paragraph() -> None:
    task = load("squad")
    questions = [
        SquadQuestion(str(at), "who?", f"Ada Lovelace wrote {at}", ("Ada Lovelace",), (0,), "place") for at in range(5)
    ]
    floor = task.floor(SimpleNamespace(examples=questions))
    assert floor.value == pytest.approx(100.0)
    assert floor.strategy == "the first 2 words of the paragraph"
    unanswerable = [SquadQuestion(f"none {at}", "who?", "Nobody knows", (), (), "place") for at in range(20)]
    floor = load("squad_v2").floor(SimpleNamespace(examples=[*questions, *unanswerable]))
    assert floor.strategy == "no answer"
    assert floor.value == pytest.approx(80.0)
