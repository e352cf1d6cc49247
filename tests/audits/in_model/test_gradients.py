"""Parameters without a gradient are named; fused projections are checked in thirds."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.mechanisms import Dims, Output, Parameter, Params, stage

from ..faults import register_cancelling
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


@pytest.mark.usefixtures("own_stages")
def test_what_gets_a_gradient_only_behind_a_gate_that_opens_is_not_blamed() -> None:
    @stage("closed")
    @dataclass(frozen=True)
    class Closed(Output):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"a": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
            return p["a"][:, None, None] * output

    finding = attnlab.audit(attnlab.install(gpt2(), "closed"), checks=["gradient"]).findings["gradient flow"]
    assert finding.passed, finding.sentence
    assert "only once training has moved" in finding.sentence
    assert any("c_attn" in name for name in finding.data["late"])


@pytest.mark.usefixtures("own_stages")
def test_a_parameter_of_the_mechanism_that_cancels_fails_and_a_key_bias_does_not() -> None:
    register_cancelling()
    finding = attnlab.audit(attnlab.install(gpt2(), "dot | heat_sum"), checks=["gradient"]).findings["gradient flow"]
    assert not finding.passed
    assert finding.data["cancelling"]
    assert all("heat_sum_t" in name for name in finding.data["cancelling"])
    assert "nothing: the gradient is rounding, also in fp64" in finding.sentence
    assert attnlab.audit(MODELS["BERT"](), checks=["gradient"]).passed
