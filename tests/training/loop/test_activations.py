"""Composed activations become torch's own: the same function, the same weights."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config
from transformers.activations import ACT2FN, GELUTanh

from attnlab.training.loop.activations import fuse_activations

CONFIG = GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2)


def test_outputs_and_gradients_are_those_of_the_original() -> None:
    torch.manual_seed(0)
    head: Any = AutoModelForCausalLM
    model = head.from_config(CONFIG).double().eval()
    tokens = torch.randint(0, 50, (3, 16))

    def measure() -> list[torch.Tensor]:
        model.zero_grad()
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]

    names, before = set(model.state_dict()), measure()
    with fuse_activations(model):
        assert all(type(block.mlp.act) is GELUTanh for block in model.transformer.h)
        assert set(model.state_dict()) == names
        for old, new in zip(before, measure(), strict=True):
            torch.testing.assert_close(new, old, rtol=1e-12, atol=1e-14)
    assert all(map(torch.equal, before, measure()))


def test_far_values_are_equal() -> None:
    x = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    model = nn.Sequential(ACT2FN["gelu_new"])
    expected = model(x)
    with fuse_activations(model):
        torch.testing.assert_close(model(x), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["gelu", "gelu_fast", "relu", "silu", "quick_gelu"])
def test_other_activations_stay(name: str) -> None:
    model = nn.Sequential(ACT2FN[name])
    kept = model[0]
    with fuse_activations(model):
        assert model[0] is kept
