"""Prompts and sentences that do not fit are refused with the settings to change."""

import pytest

from attnlab.data import train_tokenizer
from attnlab.errors import TrainingError
from attnlab.training.job.samples import check_samples, choose_fitting_prompts
from attnlab.training.spec import Watching

TEXT = ["the cat sat on the mat and the dog ran to the tree"] * 20


def test_an_error_names_prompts_and_num_tokens() -> None:
    tokenizer = train_tokenizer(TEXT, "word")
    settings = Watching(prompts=("the cat sat on the mat",), num_tokens=10)
    num_given = 6 + (tokenizer.bos_token_id is not None)
    check_samples(settings, tokenizer, num_given + 9)
    check_samples(settings, tokenizer, None)
    with pytest.raises(TrainingError, match=r"prompts\[0\].*num_tokens = 10.*Set num_tokens = 9 or less"):
        check_samples(settings, tokenizer, num_given + 8)
    with pytest.raises(TrainingError, match=r"sentences\[0\].*shorter sentence"):
        check_samples(Watching(prompts=(), sentences=("the cat sat",)), tokenizer, 4)


def test_an_empty_prompt_needs_a_start_token() -> None:
    tokenizer = train_tokenizer(TEXT, "word")
    tokenizer.bos_token = None
    with pytest.raises(TrainingError, match=r"prompts\[0\] is empty.*no start token"):
        check_samples(Watching(prompts=("",)), tokenizer, None)


def test_prompts_are_cut_at_words_that_fit() -> None:
    tokenizer = train_tokenizer(TEXT, "word")
    start = int(tokenizer.bos_token_id is not None)
    assert choose_fitting_prompts(["the cat sat on", "the dog"], tokenizer, 3 + start) == ["the cat sat", "the dog"]
    assert choose_fitting_prompts(["the cat"], tokenizer, 0) == []
