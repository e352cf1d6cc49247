"""Every task knows its floor in the unit of its deciding figure: what the best trivial strategy would be scored."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.tasks import LabelledText, load
from attnlab.tasks.language.line import make_lines
from attnlab.tasks.squad import SquadQuestion

from ..tokenizers import SENTENCES, byte_level, wordpiece


def dev_of(task: Any, examples: list[Any], tokenizer: Any = None) -> SimpleNamespace:
    """Return examples as a run is evaluated on."""
    return SimpleNamespace(examples=examples, features=task.features(examples, tokenizer))


def labelled(*labels: int | float) -> SimpleNamespace:
    """Return labelled texts."""
    texts = [LabelledText(str(at), "text", None, label, f"row {at}") for at, label in enumerate(labels)]
    return SimpleNamespace(examples=texts)


def test_classes_have_the_best_constant_answer() -> None:
    majority = load("sst2").floor(labelled(0, 0, 0, 1))
    assert (majority.value, majority.strategy) == (0.75, "always '0'")
    positive = load("mrpc").floor(labelled(0, 0, 0, 1))
    assert (positive.value, positive.strategy) == (pytest.approx(2 * 1 / 5), "always '1'")
    assert load("cola").floor(labelled(0, 0, 0, 1)).value == 0
    assert load("stsb").floor(labelled(1.0, 2.0)).value == 0
    assert load("boolq").floor(labelled(1, 1, 0)).strategy == "always 'true'"


def test_questions_have_the_first_words_of_their_paragraph() -> None:
    task = load("squad")
    questions = [
        SquadQuestion(str(at), "who?", f"Ada Lovelace wrote {at}", ("Ada Lovelace",), (0,), "place") for at in range(5)
    ]
    floor = task.floor(SimpleNamespace(examples=questions))
    assert floor.value == pytest.approx(100.0)
    assert floor.strategy == "the first 2 words of the paragraph"
    unanswerable = [SquadQuestion(f"none {at}", "who?", "Nobody knows", (), (), "place") for at in range(20)]
    floor = load("squad_v2").floor(SimpleNamespace(examples=[*questions, *unanswerable]))
    assert floor.strategy == "no answer"
    assert floor.value == pytest.approx(80.0)


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
