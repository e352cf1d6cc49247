"""Muon against torch's, which computes in bf16, and what it does with matrices that are several in one."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers.pytorch_utils import Conv1D

from attnlab.training import build
from attnlab.training.loop.muon import Muon, count_operations, orthogonalize
from attnlab.training.loop.optimizer import make_optimizer
from attnlab.training.spec import Optimizer
from tests.training.runs import small


@pytest.mark.parametrize("shape", [(16, 16), (8, 24), (24, 8)])
def test_updates_are_those_of_torch(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    mine = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(mine.detach().clone())
    ours = Muon([mine], {}, 0.1, 0.3)
    reference = torch.optim.Muon([theirs], lr=0.1, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")
    before = mine.detach().clone()
    for _ in range(3):
        mine.grad = torch.randn(shape)
        theirs.grad = mine.grad.clone()
        ours.step()
        reference.step()
    moved = (theirs - before).abs().mean()
    assert (mine - theirs).abs().mean() < 0.02 * moved  # bf16 has three digits


def test_singular_values_become_about_one_and_zeros_stay() -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalize(torch.randn(12, 40)))
    assert 0.6 < values.min() < values.max() < 1.3
    assert not orthogonalize(torch.zeros(4, 6)).any()


def test_fused_projections_are_updated_as_if_they_were_apart() -> None:
    torch.manual_seed(0)
    model: Any = build(small()).model
    fused = model.transformer.h[0].attn.c_attn.weight
    assert isinstance(model.transformer.h[0].attn.c_attn, Conv1D)
    before, gradient = fused.detach().clone(), torch.randn(fused.shape)
    fused.grad = gradient.clone()
    make_optimizer(model, Optimizer(name="muon", weight_decay=0.0)).step(0.1)
    # A Conv1D holds the transpose of a linear layer's weight, and its update is the transpose of that one's.
    for part, start, grad in zip(fused.split(16, 1), before.split(16, 1), gradient.split(16, 1), strict=True):
        apart = nn.Parameter(start.T.contiguous())
        apart.grad = grad.T.contiguous()
        Muon([apart], {}, 0.1, 0.0).step()
        torch.testing.assert_close(part, apart.T, rtol=1e-4, atol=1e-5)


def test_operations_are_those_of_its_products() -> None:
    with FlopCounterMode(display=False) as counter:
        orthogonalize(torch.randn(24, 8))
    assert count_operations(24, 8) == counter.get_total_flops()
