"""Attention modules are found with their sizes, or the model is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoModel, ResNetConfig

import attnlab
from attnlab.errors import InstallError
from attnlab.install.attention_modules import find_attention_modules
from tests.install.models import HEADS, REFUSED, WIDTH, build


@pytest.mark.parametrize(
    ("name", "num_key_heads"),
    [("bert", HEADS), ("gpt2", HEADS), ("llama grouped", 2), ("phi3 fused", 2), ("gpt-neox", HEADS)],
)
def test_heads_and_widths_are_read(name: str, num_key_heads: int) -> None:
    attentions = find_attention_modules(build(name))
    assert [attention.index for attention in attentions] == [0, 1]
    assert len({attention.stack for attention in attentions}) == 1
    for attention in attentions:
        assert (attention.num_heads, attention.head_dim, attention.value_dim) == (HEADS, WIDTH // HEADS, WIDTH // HEADS)
        assert [attention.heads_of("q"), attention.heads_of("v")] == [HEADS, num_key_heads]
        assert (attention.projections is None) == (name == "gpt-neox")


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_take_one_is_refused_by_name(name: str) -> None:
    with pytest.raises(InstallError, match=r"'[\w.]+' \(\w+\) (cannot take a mechanism|computes attention by itself)"):
        attnlab.install(build(name), "dot | softmax")


def test_a_model_with_no_attention_is_refused() -> None:
    kind: Any = AutoModel
    model = kind.from_config(ResNetConfig(hidden_sizes=[8], depths=[1], embedding_size=8))
    with pytest.raises(InstallError, match="no attention module that goes through"):
        attnlab.install(model, "dot | softmax")
