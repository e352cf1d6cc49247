"""A model that knows the gold answers: what its answers lose, they lose to windows, offsets, n-best and length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from ..metrics.answers import exact
from .question import SquadQuestion
from .spans import Logits, Search, SquadAnswer
from .windows import ContextWindow

CERTAIN = 10.0
"""The logit of a gold position; all others are 0."""


def answer(
    questions: Sequence[SquadQuestion], windows: Sequence[ContextWindow], search: Search, threshold: float | None = None
) -> dict[str, SquadAnswer]:
    """Answer questions from logits that point at a gold answer, through the same search as any model's."""
    known = {question.id: question for question in questions}
    answers: dict[str, SquadAnswer] = {}
    for key, group in groupby(windows, key=lambda window: window.key):
        own = list(group)
        which = choose(known[key], own, search)
        answers[key] = search.of_question(_parts(known[key], own, which), threshold)
    return answers


def choose(question: SquadQuestion, windows: Sequence[ContextWindow], search: Search) -> int | None:
    """Return the first gold answer that tokens can say in the length allowed; the first of all where none can."""
    if not question.answers:
        return None
    for which, wanted in enumerate(question.answers):
        for window in windows:
            span = window.tokens_of(*question.span(which))
            if span and span[1] - span[0] < search.max_answer and exact(window.text_of(*span), wanted):
                return which
    return 0


def logits(window: ContextWindow, question: SquadQuestion, which: int | None) -> tuple[Logits, Logits]:
    """Return start and end logits that point at a gold answer, or at the null token where the window has none."""
    span = None if which is None else window.tokens_of(*question.span(which))
    starts, ends = np.zeros(len(window.begins)), np.zeros(len(window.begins))
    first, last = (window.null, window.null) if span is None else span
    starts[first] = ends[last] = CERTAIN
    return starts, ends


def _parts(
    question: SquadQuestion, windows: Sequence[ContextWindow], which: int | None
) -> Iterator[tuple[ContextWindow, Logits, Logits]]:
    for window in windows:
        yield (window, *logits(window, question, which))
