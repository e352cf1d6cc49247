"""Windows and chunks are those of transformers: Gemma 2's and Llama 4's attention, in fp64, with gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.masking_utils import (
    chunked_causal_mask_function,
    eager_mask,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.llama4 import modeling_llama4

from .published import BATCH, DIM, LENGTH, assert_equal, draw_inputs

MODELS = {
    "dot | softmax | window(5)": (modeling_gemma2, sliding_window_causal_mask_function(5), True),
    # Distances up to the number itself in both directions.
    "dot | softmax | window(6)": (modeling_gemma2, sliding_window_bidirectional_mask_function(5), False),
    "dot | softmax | chunk(7)": (modeling_llama4, chunked_causal_mask_function(7, torch.zeros(BATCH).long()), True),
}


@pytest.mark.parametrize("line", MODELS)
def test_masks_are_those_of_transformers(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The published code computes softmax in fp32, whatever the dtype.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, dim, dtype=None: torch.softmax(x, dim))
    code, function, causal = MODELS[line]
    mask = eager_mask(BATCH, LENGTH, LENGTH, mask_function=function, dtype=torch.float64)

    def publish(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        module: Any = SimpleNamespace(num_key_value_groups=1, training=False)
        out: Tensor = code.eager_attention_forward(module, q, k, v, mask, scaling=DIM**-0.5)[0]
        return out.transpose(1, 2)

    assert_equal(line, publish, draw_inputs(), {}, causal=causal)
