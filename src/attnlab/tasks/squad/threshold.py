"""The threshold above which a question is held to have no answer: tuned on questions that are never the scored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError

from ..metrics.squad import raw_scores
from .question import SquadQuestion
from .spans import SquadAnswer


@dataclass(frozen=True)
class NullThreshold:
    """How far having no answer must be ahead of the best span to win, and the questions it was tuned on."""

    value: float = 0.0
    tuned_on: frozenset[str] = field(default=frozenset(), repr=False)

    def refuse_overlap(self, questions: Sequence[SquadQuestion]) -> None:
        """Refuse to score questions whose labels chose the threshold."""
        shared = [question for question in questions if question.id in self.tuned_on]
        if shared:
            raise TaskError(
                f"{shared[0].place}: the null threshold {self.value:.4g} was tuned on {len(shared)} of the questions "
                f"that are scored, the first is '{shared[0].id}'; tune it on questions held out of the training set"
            )


def tune(questions: Sequence[SquadQuestion], answers: Mapping[str, SquadAnswer]) -> NullThreshold:
    """Return the threshold with the best F1 on questions of the training side, which may then not be scored."""
    if not questions:
        raise TaskError("the null threshold needs questions to be tuned on; hold some of the training set out")
    missing = next((question for question in questions if question.id not in answers), None)
    if missing is not None:
        raise TaskError(f"{missing.place}: question '{missing.id}' has no answer to tune the null threshold with")
    golds = {question.id: question.answers for question in questions}
    _, f1 = raw_scores(golds, {key: answers[key].best for key in golds})
    leads = np.array([answers[key].null_lead for key in golds])
    # What each question gains once its answer is let through, when having none is what it gets otherwise.
    gains = np.array([f1[key] - float(not wanted) for key, wanted in golds.items()])
    return NullThreshold(_best(leads, gains), frozenset(golds))


def _best(leads: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    values, which = np.unique(leads, return_inverse=True)
    reached = np.cumsum(np.bincount(which, weights=gains, minlength=values.size))
    best = int(reached.argmax())
    if reached[best] > 0:
        return float(values[best])
    # Nothing should be answered: just below the smallest lead there is.
    return float(np.nextafter(values[0], -np.inf))
