"""Special tokens: BERT's own, or the end token for a tokenizer that adds none."""

import pytest

from attnlab.errors import TaskError
from attnlab.tasks.frame import Frame, check_fast

from .tokenizers import byte_level, wordpiece


def test_a_tokenizer_with_its_own_special_tokens_is_left_alone() -> None:
    tokenizer = wordpiece()
    frame = Frame.of(tokenizer)
    encoding = tokenizer("the game", "who won").encodings[0]
    assert frame.num_added(is_pair=True) == 0
    assert frame.complete(encoding).ids == encoding.ids
    assert frame.find_position(encoding.ids) == 0
    assert frame.token == tokenizer.cls_token_id


def test_the_end_token_separates_and_ends_texts_without_special_tokens() -> None:
    tokenizer = byte_level()
    frame = Frame.of(tokenizer)
    encoding = tokenizer("the game", "who won").encodings[0]
    completed = frame.complete(encoding)
    assert frame.num_added(is_pair=True) == 2
    assert frame.num_added(is_pair=False) == 1
    assert len(completed.ids) == len(encoding.ids) + 2
    assert completed.ids[-1] == completed.ids[completed.texts.index(1) - 1] == tokenizer.eos_token_id
    assert frame.find_position(completed.ids) == len(completed.ids) - 1


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(TaskError, match="a fast tokenizer is needed"):
        check_fast(object())
