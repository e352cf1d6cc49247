"""Parameters without a gradient are named; fused projections are checked in thirds."""

from typing import Any

import torch
from torch import nn

import attnlab

from .models import MODELS, gpt2


def test_a_parameter_without_gradient_is_named() -> None:
    model: Any = gpt2()
    model.transformer.extra = nn.Parameter(torch.zeros(3))
    finding = attnlab.audit(model, checks=["gradient"]).findings["gradient flow"]
    assert not finding.passed
    assert finding.where == "transformer.extra"
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    assert not attnlab.audit(model, checks=["gradient"]).passed


def test_a_fused_projection_is_checked_in_thirds() -> None:
    model = MODELS["GPT-2"]()
    attnlab.install(model, "dot | argmax")
    finding = attnlab.audit(model, checks=["gradient"]).findings["gradient flow"]
    assert "c_attn.weight (first third)" in finding.where
    assert "c_attn.weight (last third)" not in finding.where
