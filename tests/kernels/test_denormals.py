"""Tiny numbers are rounded to 0 while a kernel with faded keys runs, and at no other time."""

import pytest
import torch

import attnlab
from attnlab.denormals import is_flushing


@pytest.fixture(autouse=True)
def plain_numbers() -> None:
    assert not is_flushing()


def test_nothing_is_rounded_after_a_forward_and_a_backward_pass() -> None:
    q, k, v = torch.randn(3, 1, 2, 40, 8).requires_grad_()
    out = attnlab.attend(q, k, v, "dot | softmax | forget", causal=True, x=torch.randn(1, 40, 16))
    assert not is_flushing()
    out.sum().backward()
    assert not is_flushing()


def test_nothing_is_rounded_after_gradients_of_a_parameter_alone() -> None:
    line = "dot | softmax(sink=learned) | forget(rate=0.9)"
    layer = attnlab.Attention(line, num_heads=2, head_dim=8)
    q, k, v = torch.randn(3, 1, 2, 40, 8)
    (learned,) = layer.parameters()
    torch.autograd.grad(layer(q, k, v, causal=True).sum(), learned)
    assert not is_flushing()


def test_nothing_is_rounded_after_a_kernel_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", fail)
    q, k, v = torch.randn(3, 1, 2, 40, 8)
    with pytest.raises(RuntimeError, match="planted"):
        attnlab.attend(q, k, v, "dot | softmax | forget(rate=0.9)", causal=True)
    assert not is_flushing()
