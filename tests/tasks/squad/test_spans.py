"""The search for spans: the best valid one wins, lengths are bounded, windows merge, nothing can win."""

import numpy as np
import pytest

from attnlab.errors import TaskError
from attnlab.tasks.squad.spans import Search
from attnlab.tasks.squad.windows import ContextWindow, make_windows

from ..tokenizers import KINDS
from .questions import CONTEXT, question

SEARCH = Search()


def one_window(kind: str = "wordpiece") -> ContextWindow:
    (window,) = make_windows([question(None)], KINDS[kind](), 384, 128)
    return window


def pointing(
    window: ContextWindow, begin: int, end: int, strength: float = 10.0
) -> tuple[ContextWindow, np.ndarray, np.ndarray]:
    starts, ends = np.zeros(len(window.begins)), np.zeros(len(window.begins))
    span = window.find_tokens(begin, end)
    assert span is not None
    starts[span[0]] = ends[span[1]] = strength
    return window, starts, ends


@pytest.mark.parametrize("kind", KINDS)
def test_the_span_that_is_pointed_at_is_the_answer(kind: str) -> None:
    begin = CONTEXT.index("Carolina")
    answer = SEARCH.search_question([pointing(one_window(kind), begin, begin + len("Carolina Panthers"))], None)
    assert answer.text == answer.best == "Carolina Panthers"
    assert answer.spans[0].score == 20.0
    assert len(answer.spans) == 20
    assert [span.score for span in answer.spans] == sorted((span.score for span in answer.spans), reverse=True)


def test_a_span_is_found_as_a_whole_search_would_find_it() -> None:
    window = one_window()
    draw = np.random.default_rng(0)
    starts, ends = draw.normal(size=(2, len(window.begins)))
    search = Search(num_best=len(window.begins), max_answer=5)
    best = max(
        (starts[i] + ends[j], window.get_text(i, j))
        for i in np.flatnonzero(window.begins >= 0).tolist()
        for j in range(i, min(i + 5, len(window.begins)))
        if window.begins[j] >= 0
    )
    found = search.search_question([(window, starts, ends)], None)
    assert (found.spans[0].score, found.text) == best


def test_longer_spans_than_allowed_are_not_found() -> None:
    window = one_window()
    part = pointing(window, 0, len(CONTEXT))
    assert Search(max_answer=400).search_question([part], None).text == CONTEXT
    assert SEARCH.search_question([part], None).text != CONTEXT


def test_ends_that_all_stand_before_the_starts_leave_a_span_all_the_same() -> None:
    window = one_window()
    falling = -np.arange(len(window.begins), dtype=float)
    answer = Search(num_best=2).search_question([(window, -falling, falling)], None)
    assert answer.text
    assert answer.spans[0].score == 0.0


def test_special_tokens_and_the_question_are_never_an_answer() -> None:
    window = one_window()
    starts = np.where(window.begins < 0, 100.0, 0.0)
    answer = SEARCH.search_question([(window, starts, starts)], None)
    assert answer.text in CONTEXT
    assert answer.spans[0].score == 0.0


def test_having_no_answer_wins_above_the_threshold_alone() -> None:
    window, starts, ends = pointing(one_window(), 4, 18)
    starts[window.null] = ends[window.null] = 10.5
    answer = SEARCH.search_question([(window, starts, ends)], 0.0)
    assert answer.null_lead == 1.0
    assert answer.text == ""
    assert answer.best == "Denver Broncos"
    assert SEARCH.search_question([(window, starts, ends)], 1.0).text == "Denver Broncos"
    assert SEARCH.search_question([(window, starts, ends)], None).text == "Denver Broncos"


def test_the_lowest_null_score_of_all_windows_counts() -> None:
    window, starts, ends = pointing(one_window(), 4, 18)
    sure = starts.copy()
    sure[window.null] = 50.0
    answer = SEARCH.search_question([(window, sure, ends), (window, starts, ends)], 0.0)
    assert answer.null_lead == -20.0
    assert len({(span.begin, span.end) for span in answer.spans}) == len(answer.spans)


def test_nan_and_wrong_lengths_are_refused() -> None:
    window, starts, ends = pointing(one_window(), 4, 18)
    with pytest.raises(TaskError, match="'q1' contain NaN"):
        SEARCH.search_question([(window, np.full_like(starts, np.nan), ends)], None)
    with pytest.raises(TaskError, match="one of each for every token"):
        SEARCH.search_question([(window, starts[:-1], ends)], None)
