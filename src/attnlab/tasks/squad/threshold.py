"""The threshold above which a question has no answer, tuned on questions that may not be scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attnlab.errors import TaskError

from ..metrics.squad import compute_raw_scores
from .question import SquadQuestion
from .spans import SquadAnswer


@dataclass(frozen=True)
class NullThreshold:
    """The lead over the best span that makes the answer empty, and the questions it was tuned on."""

    value: float = 0.0
    tuned_on: frozenset[str] = field(default=frozenset(), repr=False)

    def check_disjoint(self, questions: Sequence[SquadQuestion]) -> None:
        """Raise an error for questions whose labels were used to tune the threshold."""
        shared = [question for question in questions if question.id in self.tuned_on]
        if shared:
            raise TaskError(
                f"{shared[0].place}: the null threshold {self.value:.4g} was tuned on {len(shared)} of the questions "
                f"that are scored, the first is '{shared[0].id}'; tune it on questions held out of the training set"
            )


def tune_threshold(questions: Sequence[SquadQuestion], answers: Mapping[str, SquadAnswer]) -> NullThreshold:
    """Return the threshold with the best F1 on questions held out of the training set."""
    if not questions:
        raise TaskError("the null threshold needs questions to be tuned on; hold some of the training set out")
    missing = next((question for question in questions if question.id not in answers), None)
    if missing is not None:
        raise TaskError(f"{missing.place}: question '{missing.id}' has no answer to tune the null threshold with")
    golds = {question.id: question.answers for question in questions}
    _, f1 = compute_raw_scores(golds, {key: answers[key].best for key in golds})
    leads = np.array([answers[key].null_lead for key in golds])
    # The gain of each question if its best span replaces the empty answer.
    gains = np.array([f1[key] - float(not wanted) for key, wanted in golds.items()])
    values, which = np.unique(leads, return_inverse=True)
    totals = np.cumsum(np.bincount(which, weights=gains, minlength=values.size))
    best = int(totals.argmax())
    # If answering no question is best, the threshold is just below the smallest lead.
    threshold = values[best] if totals[best] > 0 else np.nextafter(values[0], -np.inf)
    return NullThreshold(float(threshold), frozenset(golds))
