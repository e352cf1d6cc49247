"""From a model and a text to a picture: the right head is large, and every file format can be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab
from attnlab.errors import RequestError
from attnlab.heads import AttentionMaps, show
from attnlab.heads.maps import choose_head
from attnlab.install import set_prefix
from tests.install.models import build

from .tokenizers import word_pieces


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    model: Any = attnlab.install(build("gpt2"), "cosine | relu(divide=n)")
    set_prefix(model, 2, seed=0)
    return show(model, "the unwanted cat", tokenizer=word_pieces())


def test_the_picture_has_tokens_and_says_where_its_weights_come_from(maps: AttentionMaps) -> None:
    assert maps.weights.shape == (2, 4, 5, 7)
    assert maps.keys == ("(prefix 0)", "(prefix 1)", *maps.tokens)
    picture = maps.picture()
    for text in ("-want", "(prefix 0)", "GPT2Model", f"Layer {maps.layer}, head {maps.head}"):
        assert f">{text}<" in picture
    assert "cosine | relu(divide=n)" in picture
    assert "a hyphen, such as -ing, continues the word" in picture
    assert "2 layers × 4 heads, 5 tokens" in repr(maps)
    assert "<img" in maps._repr_html_()


def test_a_causal_model_reads_no_tokens_of_an_encoder() -> None:
    pieces = word_pieces()
    causal, encoder = show(build("gpt2"), "the cat", tokenizer=pieces), show(build("bert"), "the cat", tokenizer=pieces)
    assert causal.tokens == ("the", "cat")
    assert causal.special_tokens.startswith("Special tokens: none, since [CLS] and [SEP] of the tokenizer are an enc")
    assert encoder.tokens == ("[CLS]", "the", "cat", "[SEP]")
    assert encoder.special_tokens == (
        "Special tokens: [CLS] before and [SEP] after the text, as its tokenizer adds them."
    )
    assert "continues the word" not in causal.picture()
    assert ">Special tokens: none" in causal.picture()
    asked = {given: show(build("gpt2"), "the cat", tokenizer=pieces, special_tokens=given) for given in (True, False)}
    assert (asked[True].tokens, asked[False].tokens) == (encoder.tokens, causal.tokens)


def test_another_head_is_enlarged(maps: AttentionMaps) -> None:
    assert ">Layer 1, head 3<" in maps.enlarge(1, 3).picture()
    for layer, head in ((2, 0), (0, -1), (True, 0)):
        with pytest.raises(RequestError, match="must be a number from 0 to"):
            maps.enlarge(layer, head)
    with pytest.raises(RequestError, match="give both or neither"):
        show(build("gpt2"), "the cat", layer=1)


@pytest.mark.usefixtures("mixers")
def test_layers_have_the_numbers_of_the_model() -> None:
    model = attnlab.install(build("gpt2"), "mixer(average) @ 0; dot | softmax @ 1")
    maps = show(model, "the unwanted cat", tokenizer=word_pieces())
    assert (maps.layer, maps.layers) == (1, (1,))
    assert torch.equal(maps.enlarge(1, 2).shown, maps.weights[0, 2])
    assert ">Layer 1, head 2<" in maps.enlarge(1, 2).picture()
    with pytest.raises(RequestError, match="layer must be one of 1, not 0"):
        maps.enlarge(0, 2)


@pytest.mark.parametrize("ending", [".svg", ".png", ".json"])
def test_it_is_saved(maps: AttentionMaps, ending: str, tmp_path: Path) -> None:
    assert maps.save(tmp_path / f"maps{ending}").stat().st_size > 1000


def test_the_head_that_looks_at_other_tokens_is_large() -> None:
    weights = torch.zeros(2, 2, 4, 4)
    weights[0, 0] = torch.eye(4)  # itself
    weights[0, 1, :, 0] = 1.0  # the first token
    weights[1, 0] = torch.eye(4).roll(1, 0)
    weights[1, 1] = 0.25
    assert choose_head(weights) == (1, 0)
