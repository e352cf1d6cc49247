"""Figures of predictions that stand in a file, against data that stands in another."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import AttnlabWarning, TaskError

from .classification import Classification
from .metrics.squad import EVERY_ANSWER_STANDS, score_v1, score_v2
from .predictions import PredictionFile, read_predictions
from .scores import Scores
from .squad import Squad
from .squad.question import SquadQuestion, read_questions

File = str | Path


def score_labels(task: Classification, data: File, predictions: File) -> Scores:
    """Score predicted labels; what is wrong with one is said with its row."""
    examples = task.examples(data)
    given = read_predictions(predictions).of(examples)
    return task.score(
        {key: task.labels.read(one.value, one.place, "prediction") for key, one in given.items()}, examples
    )


@dataclass(frozen=True)
class Rules:
    """What the official SQuAD scripts leave to their caller."""

    is_v2: bool = False
    """Whether v2.0's script is meant although every question has an answer."""
    no_answer: File | None = None
    """v2.0: a file with each question's score of having no answer, and the score above which there is none."""
    threshold: float = EVERY_ANSWER_STANDS
    is_strict: bool = False
    """Whether a missing prediction, which v1.1 counts as wrong with a warning, is an error."""


OFFICIAL = Rules()


def score_squad(data: File, predictions: File, rules: Rules = OFFICIAL) -> Scores:
    """Score answers as the official script of the data's version does: v2.0 where a question has no answer."""
    questions = read_questions(data)
    golds = {question.id: question.answers for question in questions}
    file = read_predictions(predictions)
    texts = _texts(file, questions)
    is_v2 = rules.is_v2 or any(not question.answers for question in questions)
    _check_missing(file, questions, is_v2 or rules.is_strict)
    if is_v2:
        chances = None if rules.no_answer is None else _chances(read_predictions(rules.no_answer), questions)
        task = Squad("squad_v2", has_null=True)
        return task.scores(score_v2(golds, texts, chances, rules.threshold), texts)
    if rules.no_answer is not None:
        raise TaskError(f"{data} has an answer to every question, so scores of having none mean nothing; drop them")
    return Squad().scores(score_v1(golds, texts), texts)


def _texts(file: PredictionFile, questions: list[SquadQuestion]) -> dict[str, str]:
    given = file.given if file.has_ids else file.of(questions)
    texts: dict[str, str] = {}
    known = {question.id for question in questions}
    for key, one in given.items():
        if not isinstance(one.value, str):
            raise TaskError(f"{one.place}: the prediction for '{key}' is {one.value!r}; a text is needed, '' for none")
        if key in known:
            texts[key] = one.value
    if not texts:
        raise TaskError(
            f"{file.path}: none of its {len(given)} ids, such as '{next(iter(given))}', is one of the data, such as "
            f"'{questions[0].id}' ({questions[0].place}); the files do not belong together"
        )
    return texts


def _check_missing(file: PredictionFile, questions: list[SquadQuestion], is_error: bool) -> None:
    missing = file.missing(questions) if file.has_ids else []
    if not missing:
        return
    said = (
        f"{file.path} has no prediction for '{missing[0].id}' ({missing[0].place}), one of {len(missing)} missing of "
        f"{len(questions)}"
    )
    if is_error:
        raise TaskError(f"{said}; every question needs one, '' where the system answers nothing")
    warnings.warn(f"{said}; they count as wrong, as in the official v1.1 script", AttnlabWarning, stacklevel=3)


def _chances(file: PredictionFile, questions: list[SquadQuestion]) -> dict[str, float]:
    chances: dict[str, float] = {}
    for key, one in file.of(questions).items():
        is_number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        if not is_number or math.isnan(one.value):
            raise TaskError(f"{one.place}: the score of '{key}' for having no answer is {one.value!r}, not a number")
        chances[key] = float(one.value)
    return chances
