"""Unigram and bigram are distributions by Witten & Bell's formula, and know nothing of what they did not count."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnlab.tasks import load
from attnlab.tasks.batch import BatchPadding, Feature, as_tokens
from attnlab.tasks.floors import compute_ngram_losses, count_tokens
from attnlab.tasks.language.line import make_lines

from ..tokenizers import SENTENCES, byte_level, wordpiece


def features(*rows: list[int]) -> list[Feature]:
    """Return rows of ids as features."""
    return [Feature(str(at), at, {"input_ids": as_tokens(row)}, {}, BatchPadding(0)) for at, row in enumerate(rows)]


ROWS = features([0, 1, 2, 1, 2], [0, 1, 1])


def test_chances_of_all_tokens_sum_to_one() -> None:
    counts = count_tokens(ROWS, 5)
    every = np.arange(5)
    assert np.exp(-counts.unigram_losses(every)).sum() == pytest.approx(1)
    for left in range(5):
        assert np.exp(-counts.bigram_losses(np.full(5, left), every)).sum() == pytest.approx(1)


def test_the_formula_by_hand() -> None:
    counts = count_tokens(ROWS, 5)
    # Six tokens are predicted: 1 four times, 2 twice; two types, five tokens in the vocabulary.
    unigram = (4 + 2 / 5) / (6 + 2)
    assert counts.unigram_losses(np.array([1]))[0] == pytest.approx(-math.log(unigram))
    # Behind 1: twice 2, once 1, so two types among three.
    bigram = (1 + 2 * unigram) / (3 + 2)
    assert counts.bigram_losses(np.array([1]), np.array([1]))[0] == pytest.approx(-math.log(bigram))
    assert counts.bigram_losses(np.array([4]), np.array([1]))[0] == pytest.approx(-math.log(unigram))


def test_no_more_tokens_are_counted_than_asked_for() -> None:
    counts = count_tokens(ROWS, 5, most=4)
    assert counts.num_tokens == 4
    assert counts.unigrams.tolist() == [0, 2, 2, 0, 0]


def test_tokens_that_are_no_targets_are_neighbours_alone() -> None:
    counts = count_tokens(ROWS, 5, np.array([True, True, False, True, True]))
    assert counts.unigrams.tolist() == [0, 4, 0, 0, 0]
    assert counts.lefts.tolist() == [2, 1, 1, 0, 0]


def test_nothing_to_count_leaves_all_tokens_alike() -> None:
    counts = count_tokens([], 4)
    assert counts.num_tokens == 0
    assert np.exp(-counts.bigram_losses(np.array([0]), np.array([3])))[0] == pytest.approx(1 / 4)


def test_losses_are_summed_by_part() -> None:
    counts = count_tokens(ROWS, 5)
    parts = [(np.array([1, 2]), np.array([2, 1])), (np.array([0]), np.array([1]))]
    unigram, bigram = compute_ngram_losses(counts, parts).values()
    assert unigram == pytest.approx(
        [counts.unigram_losses(np.array([2, 1])).sum(), counts.unigram_losses(np.array([1]))[0]]
    )
    assert bigram[1] == pytest.approx(counts.bigram_losses(np.array([0]), np.array([1]))[0])


def dev_of(task: Any, examples: list[Any], tokenizer: Any = None) -> SimpleNamespace:
    """Return examples as a run is evaluated on."""
    return SimpleNamespace(examples=examples, features=task.features(examples, tokenizer))


@pytest.mark.parametrize("primary", ["perplexity", "loss", "bits_per_byte", "line_perplexity"])
def test_text_has_the_bigram_in_the_unit_that_decides(primary: str) -> None:
    task, tokenizer = load("clm", primary=primary), byte_level()
    dev = dev_of(task, list(make_lines(SENTENCES)), tokenizer)
    floor = task.floor(dev, dev.features)
    assert "bigram of" in floor.strategy
    perplexity = load("clm").floor(dev, dev.features).value
    if primary == "loss":
        assert floor.value == pytest.approx(math.log(perplexity))
    if primary == "bits_per_byte":
        num_bytes = sum(block.num_bytes for block in dev.features)
        num_tokens = sum(len(block) - 1 for block in dev.features)
        assert floor.value == pytest.approx(math.log2(perplexity) * num_tokens / num_bytes)
    assert 1 < perplexity < len(tokenizer)


def test_hidden_tokens_have_the_unigram_or_the_bigram() -> None:
    task, tokenizer = load("mlm"), wordpiece()
    dev = dev_of(task, list(make_lines(SENTENCES)), tokenizer)
    floor = task.floor(dev, dev.features)
    assert 0 < floor.value < math.log(len(tokenizer))


def test_without_anything_trained_on_text_has_no_floor() -> None:
    task = load("clm")
    assert task.floor(dev_of(task, list(make_lines(SENTENCES)), byte_level()), ()) is None


def test_a_figure_of_which_more_is_better_has_no_floor_from_losses() -> None:
    task = load("clm", primary="accuracy")
    dev = dev_of(task, list(make_lines(SENTENCES)), byte_level())
    assert task.floor(dev, dev.features) is None
