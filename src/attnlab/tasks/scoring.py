"""Scores of the predictions in one file against the data in another."""

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
    """Score predicted labels; errors name the row."""
    examples = task.examples(data)
    given = read_predictions(predictions).match(examples)
    labels = {key: task.labels.read(one.value, one.place, "prediction") for key, one in given.items()}
    return task.score(labels, examples)


@dataclass(frozen=True)
class Rules:
    """Options of the official SQuAD scripts."""

    is_v2: bool = False
    """Whether to score as v2.0 although every question has an answer."""
    no_answer: File | None = None
    """v2.0: a file with each question's score of having no answer; above `threshold` the answer is empty."""
    threshold: float = EVERY_ANSWER_STANDS
    is_strict: bool = False
    """Whether a missing prediction, which v1.1 counts as wrong with a warning, is an error."""


OFFICIAL = Rules()


def score_squad(data: File, predictions: File, rules: Rules = OFFICIAL) -> Scores:
    """Score answers as the official script of the data's version does: v2.0 if a question has no answer."""
    questions = read_questions(data)
    golds = {question.id: question.answers for question in questions}
    file = read_predictions(predictions)
    texts = _read_texts(file, questions)
    is_v2 = rules.is_v2 or any(not question.answers for question in questions)
    _check_missing(file, questions, is_v2 or rules.is_strict)
    if is_v2:
        no_answer = None if rules.no_answer is None else _read_null_scores(read_predictions(rules.no_answer), questions)
        official = score_v2(golds, texts, no_answer, rules.threshold)
        return Squad("squad_v2", has_null=True).make_scores(official, texts)
    if rules.no_answer is not None:
        raise TaskError(f"{data} has an answer to every question, so scores of having none mean nothing; drop them")
    return Squad().make_scores(score_v1(golds, texts), texts)


def _read_texts(file: PredictionFile, questions: list[SquadQuestion]) -> dict[str, str]:
    given = file.given if file.has_ids else file.match(questions)
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
    problem = file.describe_missing(questions) if file.has_ids else ""
    if problem and is_error:
        raise TaskError(f"{problem}; every question needs one, '' where the system answers nothing")
    if problem:
        warnings.warn(f"{problem}; they count as wrong, as in the official v1.1 script", AttnlabWarning, stacklevel=3)


def _read_null_scores(file: PredictionFile, questions: list[SquadQuestion]) -> dict[str, float]:
    null_scores: dict[str, float] = {}
    for key, one in file.match(questions).items():
        is_number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        if not is_number or math.isnan(one.value):
            raise TaskError(f"{one.place}: the score of '{key}' for having no answer is {one.value!r}, not a number")
        null_scores[key] = float(one.value)
    return null_scores
