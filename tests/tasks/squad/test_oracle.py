"""The oracle answers correctly through windows, offsets and the search for spans."""

import pytest

from attnlab.tasks import load

from ..tokenizers import KINDS
from .questions import CONTEXT, many, question

kinds = pytest.mark.parametrize("kind", KINDS)


SMALL = {"max_len": 64, "stride": 24}


@kinds
def test_the_oracle_is_right_through_windows_spans_and_offsets(kind: str) -> None:
    task, questions = load("squad", **SMALL), many()
    scores = task.score(task.oracle(questions, KINDS[kind]()), questions)
    assert scores.figures["exact_match"] == 100.0
    assert scores.value == 100.0


@kinds
def test_the_oracle_of_v2_knows_where_there_is_no_answer(kind: str) -> None:
    task = load("squad_v2", **SMALL)
    questions = [*many(10), question(None, f"{CONTEXT} " * 4, key="none")]
    figures = task.score(task.oracle(questions, KINDS[kind]()), questions).figures
    assert figures["NoAns_exact"] == 100.0
    assert figures["HasAns_exact"] == 100.0
