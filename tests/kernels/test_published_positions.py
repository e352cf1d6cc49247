"""Position schemes are those of transformers: Llama's rotation with grouped heads, BLOOM's slopes, T5's buckets; in
fp64, with gradients. Whole models, Falcon's ALiBi among them, are compared in tests/install/test_describe.py."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.bloom import modeling_bloom
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.llama import LlamaConfig, modeling_llama
from transformers.models.t5 import modeling_t5

from .published import BATCH, DIM, HEADS, LENGTH, assert_equal, draw, draw_inputs, draw_parameters

CAUSAL = torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64).triu(1)[None, None]


@pytest.fixture(autouse=True)
def softmax_in_fp64(monkeypatch: pytest.MonkeyPatch) -> None:
    # The published code computes softmax in fp32, whatever the dtype.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, dim, dtype=None: torch.softmax(x, dim))


def make_angles(base: float, width: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of Llama's module."""
    config = LlamaConfig(
        hidden_size=width * HEADS, num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )  # fmt: skip
    module = modeling_llama.LlamaRotaryEmbedding(config)
    cos, sin = module(torch.zeros(1, dtype=torch.float64), torch.arange(LENGTH)[None])
    return cos, sin


def test_rope_with_grouped_heads_is_that_of_llama() -> None:
    cos, sin = make_angles(500.0, DIM)
    inputs = {"q": draw_inputs()["q"]} | {name: draw(BATCH, HEADS // 2, LENGTH, DIM, seed=9) for name in "kv"}

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)
        module: Any = SimpleNamespace(num_key_value_groups=2, training=False)
        out: Tensor = modeling_llama.eager_attention_forward(module, q, k, v, CAUSAL, scaling=DIM**-0.5)[0]
        return out.transpose(1, 2)

    assert_equal("dot | softmax | rope(base=500)", publish, inputs, {}, causal=True)


def test_a_share_of_rotated_channels_is_that_of_gpt_neox() -> None:
    cos, sin = make_angles(10000.0, DIM // 4)

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = modeling_gpt_neox.apply_rotary_pos_emb(q, k, cos, sin)  # type: ignore[no-untyped-call]
        module: Any = SimpleNamespace(training=False, attention_dropout=0.0)
        out: Tensor = modeling_gpt_neox.eager_attention_forward(module, q, k, v, CAUSAL, scaling=DIM**-0.5)[0]
        return out.transpose(1, 2)

    assert_equal("dot | softmax | rope(share=0.25)", publish, draw_inputs(), {}, causal=True)


@pytest.mark.parametrize("num_heads", [4, 6])
def test_alibi_is_that_of_bloom(num_heads: int) -> None:
    build = modeling_bloom.build_alibi_tensor
    bias = build(torch.ones(BATCH, LENGTH), num_heads, torch.float64).view(BATCH, num_heads, 1, LENGTH)

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / math.sqrt(DIM) + bias + CAUSAL, -1) @ v

    assert_equal("dot | softmax | alibi", publish, draw_inputs(num_heads), {}, causal=True)


@pytest.mark.parametrize("causal", [True, False])
def test_relative_is_that_of_t5(causal: bool) -> None:
    line = "dot(scale=1) | softmax | relative(buckets=12, max_distance=30)"
    places = torch.arange(LENGTH)
    find: Any = modeling_t5.T5Attention._relative_position_bucket
    buckets = find(places[None] - places[:, None], bidirectional=not causal, num_buckets=12, max_distance=30)

    def publish(q: Tensor, k: Tensor, v: Tensor, relative_bias: Tensor) -> Tensor:
        scores = q @ k.mT + relative_bias[:, buckets]
        return torch.softmax(scores + CAUSAL if causal else scores, -1) @ v

    assert_equal(line, publish, draw_inputs(), draw_parameters(line), causal=causal)
