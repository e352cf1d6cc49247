"""Mechanisms of the literature are what their authors published: compared with their code, in fp64, with gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_oss import modeling_gpt_oss

from .published import DIM, LENGTH, assert_equal, draw_inputs, draw_parameters, import_naive

CAUSAL = torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64).triu(1)[None, None]
SCALE = DIM**-0.5


def test_a_learned_sink_is_that_of_gpt_oss() -> None:
    line = "dot | softmax(sink=learned)"

    def publish(q: Tensor, k: Tensor, v: Tensor, softmax_sink: Tensor) -> Tensor:
        module: Any = SimpleNamespace(sinks=softmax_sink, num_key_value_groups=1, training=False)
        out: Tensor = modeling_gpt_oss.eager_attention_forward(module, q, k, v, CAUSAL, scaling=SCALE)[0]
        return out.transpose(1, 2)

    assert_equal(line, publish, draw_inputs(), draw_parameters(line), causal=True)


def test_a_cap_is_that_of_gemma_2(monkeypatch: pytest.MonkeyPatch) -> None:
    # The published code computes softmax in fp32, whatever the dtype.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, dim, dtype: torch.softmax(x, dim))

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        module: Any = SimpleNamespace(num_key_value_groups=1, training=False)
        out: Tensor = modeling_gemma2.eager_attention_forward(module, q, k, v, CAUSAL, scaling=SCALE, softcap=0.7)[0]
        return out.transpose(1, 2)

    assert_equal("dot | cap(0.7) | softmax", publish, draw_inputs(), {}, causal=True)


def test_stick_breaking_is_that_of_flash_linear_attention() -> None:
    naive = import_naive("stickbreaking_attn", "naive_stickbreaking_attn")

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        out: Tensor = naive(q, k, v, attend_current=True)[0]
        return out.transpose(1, 2)

    assert_equal("dot | stick_breaking", publish, draw_inputs(), {}, causal=True)
