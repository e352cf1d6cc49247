"""Every token knows its characters in the context, whatever the tokenizer, and windows cover all of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import TaskError
from attnlab.tasks.squad import SquadQuestion
from attnlab.tasks.squad.windows import OUTSIDE, ContextWindow, make_windows

from ..tokenizers import KINDS, byte_level, wordpiece
from .questions import CONTEXT, question

kinds = pytest.mark.parametrize("kind", KINDS)


def windows(one: SquadQuestion, kind: str, max_len: int = 384, stride: int = 128) -> list[ContextWindow]:
    return make_windows([one], KINDS[kind](), max_len, stride)


@kinds
@pytest.mark.parametrize("answer", ["Denver Broncos", "24–10", "Levi's Stadium", "café", "Köln", "北京", "The", "."])
def test_the_target_tokens_say_the_answer(kind: str, answer: str) -> None:
    (window,) = windows(question(answer), kind)
    said = window.get_text(window.targets["start_positions"], window.targets["end_positions"])  # type: ignore[arg-type]
    assert said == answer


@kinds
def test_no_token_begins_or_ends_with_a_space(kind: str) -> None:
    (window,) = windows(question("Denver", f"  {CONTEXT}\n\n  and more  "), kind)
    for begin, end in zip(window.begins, window.ends, strict=True):
        if begin != OUTSIDE:
            text = window.context[begin:end]
            assert text
            assert text == text.strip()


@kinds
def test_long_contexts_become_windows_that_cover_everything(kind: str) -> None:
    found = windows(question("third title", CONTEXT * 6), kind, max_len=60, stride=20)
    assert len(found) > 3
    assert all(len(window.inputs["input_ids"]) <= 60 for window in found)
    covered = {
        character
        for window in found
        for begin, end in zip(window.begins, window.ends, strict=True)
        for character in range(begin, end)
    }
    solid = {number for number, character in enumerate(CONTEXT * 6) if not character.isspace()}
    assert solid <= covered


@kinds
def test_a_window_without_the_answer_points_at_the_null_token(kind: str) -> None:
    found = windows(question("third title", CONTEXT * 6), kind, max_len=60, stride=20)
    for window in found:
        targets = window.targets["start_positions"], window.targets["end_positions"]
        if window.find_tokens(*question("third title", CONTEXT * 6).span(0)) is None:
            assert targets == (window.null, window.null)
        else:
            assert window.get_text(*targets) == "third title"  # type: ignore[arg-type]
    assert any(window.targets["start_positions"] == window.null for window in found)


def test_the_null_token_is_never_of_the_context() -> None:
    (bert,) = windows(question(None), "wordpiece")
    (gpt2,) = windows(question(None), "byte level")
    assert bert.null == 0
    assert bert.inputs["input_ids"][0] == wordpiece().cls_token_id
    # Only the last token of a model that reads forwards has seen all of it.
    assert gpt2.null == len(gpt2.inputs["input_ids"]) - 1
    assert gpt2.begins[gpt2.null] == OUTSIDE


def test_a_tokenizer_without_marks_gets_an_end_token_between_and_behind() -> None:
    tokenizer = byte_level()
    (window,) = windows(question("Denver"), "byte level")
    end = tokenizer.eos_token_id
    ids = list(window.inputs["input_ids"])
    assert ids == [*tokenizer("Who won?")["input_ids"], end, *tokenizer(CONTEXT)["input_ids"], end]


WORDS = st.sampled_from(["Denver", "café", "Köln", "北京", "24–10", "a", "Levi's", "x-y", "😀", "ﬁ", "naïve", "…"])
SPACES = st.sampled_from([" ", "  ", "\n", "\t ", " "])


@pytest.mark.parametrize("kind", KINDS)
@given(parts=st.lists(st.tuples(WORDS, SPACES), min_size=1, max_size=30), data=st.data())
def test_any_span_of_words_comes_back_through_its_tokens(
    kind: str, parts: list[tuple[str, str]], data: st.DataObject
) -> None:
    context = "".join(word + space for word, space in parts)
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first, min(first + 4, len(parts) - 1)))
    begin = sum(len(word + space) for word, space in parts[:first])
    end = sum(len(word + space) for word, space in parts[:last]) + len(parts[last][0])
    answer = context[begin:end]
    one = SquadQuestion("q", "Who won?", context, (answer,), (begin,), "here")
    found = [
        window.get_text(*span)
        for window in windows(one, kind, max_len=48, stride=24)
        if (span := window.find_tokens(begin, end))
    ]
    assert all(text == answer for text in found)
    if len(answer) < 20:
        assert found


@kinds
def test_a_question_too_long_for_the_window_is_refused(kind: str) -> None:
    with pytest.raises(TaskError, match=r"test, q1: question 'q1' has \d+ tokens, .*room for .*raise max_len"):
        windows(question("Denver", text="Who won the game? " * 30), kind, max_len=60, stride=20)


def test_a_context_without_tokens_is_refused() -> None:
    zero_width = SquadQuestion("q", "Who?", "\u200b", (), (), "dev.json, row 3")
    with pytest.raises(TaskError, match=r"dev.json, row 3: the tokenizer finds no token in the context"):
        windows(zero_width, "wordpiece")


def test_a_slow_tokenizer_is_refused() -> None:
    class Slow:
        is_fast = False

    slow: Any = Slow()
    with pytest.raises(TaskError, match="a fast tokenizer is needed"):
        make_windows([question("Denver")], slow, 384, 128)
