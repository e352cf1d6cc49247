"""Attention dropout: every kernel that draws it draws the same, at the right rate, and scales what stays."""

from __future__ import annotations

import pytest
import torch

from attnlab.kernels import attend
from attnlab.mechanisms import UNIFORM

from .problems import problem, tokens_for, x_for


def run(name: str, situation: str, length: int, kernel: str) -> list[torch.Tensor] | None:
    """Return the output and gradients under dropout, or None where the kernel draws none."""
    given = problem(name, situation, length)
    inputs = [given.tensors[x].clone().requires_grad_() for x in "qkv"]
    parameters = {x: t for x, t in given.tensors.items() if x not in "qkv"}
    if kernel in ("linear", "sdpa", "rowwise") or kernel not in given.kernels:
        return None
    out = attend(
        inputs[0], inputs[1], inputs[2], given.mechanism, causal=given.causal, mask=given.mask, parameters=parameters,
        kernel=kernel, dropout=0.3, generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    return [out, *torch.autograd.grad(out.square().sum(), inputs, allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize("length", [7, 150])
@pytest.mark.parametrize("situation", ["plain", "both", "cached"])
@pytest.mark.parametrize(
    "name", ["baseline", "relu-attention", "additive", "l1-attention", "minkowski-learned", "entmax"]
)
def test_every_kernel_drops_the_same_weights(name: str, situation: str, length: int) -> None:
    expected = run(name, situation, length, "reference")
    assert expected is not None
    kernel = {"additive": "additive", "l1-attention": "distance", "minkowski-learned": "distance"}.get(
        name, "blockwise"
    )
    found = run(name, situation, length, kernel)
    assert found is not None
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, msg=kernel)


def test_dropout_keeps_the_mean_and_drops_at_the_rate() -> None:
    q = torch.zeros(4, 2, 200, 8)
    v = torch.eye(200).expand(4, 2, 200, 200)
    w = attend(q, q, v, "dot | softmax", dropout=0.25, generator=torch.Generator().manual_seed(0), kernel="blockwise")
    assert abs(float((w == 0).float().mean()) - 0.25) < 0.005
    assert abs(float(w.sum(-1).mean()) - 1) < 0.005
    halves = w.reshape(4, 2, 200, 2, 100)
    assert not torch.equal(halves[:, :, :, 0] == 0, halves[:, :, :, 1] == 0)


def test_the_zero_mask_drops_at_the_rate_everywhere() -> None:
    q, v = torch.zeros(1, 1, 300, 4), torch.eye(300)[None, None]
    w = attend(
        q, q, v, "dot | softmax | mask(zero)", causal=True, dropout=0.1, generator=torch.Generator().manual_seed(0)
    )
    assert abs(float((w[0, 0, :128, 128:] == 0).float().mean()) - 0.1) < 0.02


def test_calls_draw_anew_and_follow_the_global_seed() -> None:
    q = torch.ones(1, 1, 20, 4)
    torch.manual_seed(1)
    one, two = attend(q, q, q, dropout=0.5), attend(q, q, q, dropout=0.5)
    torch.manual_seed(1)
    assert torch.equal(one, attend(q, q, q, dropout=0.5))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("name", UNIFORM)
def test_every_mechanism_takes_dropout(name: str) -> None:
    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    assert (
        attend(q, k, v, name, causal=True, dropout=0.1, x=x_for(name, q, k), tokens=tokens_for(name, k))
        .isfinite()
        .all()
    )
