"""A text stands between the special tokens that a model saw in training, not between those of an encoder."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import processors

from attnlab.data.tokenizers.builders import build_characters, build_words
from attnlab.heads.tokens import read_tokens
from attnlab.special_tokens import SpecialTokens
from attnlab.tasks import load
from tests.heads.tokenizers import byte_pairs, word_pieces


def words() -> Any:
    return build_words({word: number for number, word in enumerate(("<START>", "<STOP>", "<UNK>", "<PAD>", "the"))})


def llama(adds_start: bool) -> Any:
    """Make byte pairs with a template that adds a start token, as add_bos_token of Llama does, or none."""
    tokenizer = byte_pairs()
    if adds_start:
        first = ("<|endoftext|>", 0)
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[first]
        )
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "is_causal", "names"),
    [
        (word_pieces(), True, ([], [])),
        (word_pieces(), False, (["[CLS]"], ["[SEP]"])),
        (word_pieces(), None, (["[CLS]"], ["[SEP]"])),
        (words(), True, (["<START>"], ["<STOP>"])),
        (llama(adds_start=True), True, (["<|endoftext|>"], [])),
        (llama(adds_start=False), True, ([], [])),
    ],
)
def test_a_causal_model_reads_start_and_end_alone(tokenizer: Any, is_causal: bool | None, names: Any) -> None:
    assert SpecialTokens.of_model(tokenizer, is_causal).list_names(tokenizer) == names


@pytest.mark.parametrize(
    "tokenizer", [word_pieces(), words(), byte_pairs(), build_characters({"<END>": 0, "<UNK>": 1, "<PAD>": 2, "t": 3})]
)
@pytest.mark.parametrize("settings", [{}, {"has_start": False}, {"has_end": False}])
def test_a_picture_has_the_tokens_of_a_line_in_training(tokenizer: Any, settings: dict[str, bool]) -> None:
    task = load("clm", **settings)
    text = "the the ab"
    (line,) = task.features([type("Line", (), {"id": "0", "text": text, "place": ""})()], tokenizer)
    shown = read_tokens(text, tokenizer, task.find_special_tokens(tokenizer))
    assert shown.inputs["input_ids"][0].tolist() == line.inputs["input_ids"].tolist()
    assert len(shown.names) == len(line.inputs["input_ids"])
    assert all(values.shape == (1, len(shown.names)) for values in shown.inputs.values())


@pytest.mark.parametrize("name", ["mlm", "sst2", "squad"])
def test_an_encoder_reads_its_template(name: str) -> None:
    tokens = load(name).find_special_tokens(word_pieces())
    assert tokens.list_names(word_pieces()) == (["[CLS]"], ["[SEP]"])


def test_the_last_token_of_a_classifier_without_a_template_is_its_end() -> None:
    tokenizer = byte_pairs()
    assert load("sst2").find_special_tokens(tokenizer).list_names(tokenizer) == ([], ["<|endoftext|>"])
