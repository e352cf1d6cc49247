"""Answers from logits that point at the gold answers: their errors are those of windows, offsets and the search."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ..metrics.answers import exact
from .question import SquadQuestion
from .spans import Logits, Search, SquadAnswer
from .windows import ContextWindow

CERTAIN = 10.0
"""The logit of a gold position; all others are 0."""


def answer_from_golds(
    questions: Sequence[SquadQuestion], windows: Sequence[ContextWindow], search: Search, threshold: float | None = None
) -> dict[str, SquadAnswer]:
    """Answer questions from logits that point at a gold answer, through the same search as any model's."""
    by_id = {question.id: question for question in questions}
    answers: dict[str, SquadAnswer] = {}
    for key, group in groupby(windows, key=lambda window: window.key):
        own_windows = list(group)
        which = _choose_answer(by_id[key], own_windows, search)
        parts = [(window, *_make_logits(window, by_id[key], which)) for window in own_windows]
        answers[key] = search.search_question(parts, threshold)
    return answers


def _choose_answer(question: SquadQuestion, windows: Sequence[ContextWindow], search: Search) -> int | None:
    """Return the first gold answer that a span of allowed length reproduces, or the first of all."""
    if not question.answers:
        return None
    for which, wanted in enumerate(question.answers):
        for window in windows:
            span = window.find_tokens(*question.span(which))
            if span and span[1] - span[0] < search.max_answer and exact(window.get_text(*span), wanted):
                return which
    return 0


def _make_logits(window: ContextWindow, question: SquadQuestion, which: int | None) -> tuple[Logits, Logits]:
    """Return start and end logits that point at a gold answer, or at the null token if the window has none."""
    span = None if which is None else window.find_tokens(*question.span(which))
    starts, ends = np.zeros(len(window.begins)), np.zeros(len(window.begins))
    first, last = (window.null, window.null) if span is None else span
    starts[first] = ends[last] = CERTAIN
    return starts, ends
