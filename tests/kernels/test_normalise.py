"""Unit vectors: values, gradients, zero vectors, and second derivatives, which are refused."""

import pytest
import torch

from attnlab import attend
from attnlab.errors import KernelError
from attnlab.kernels.normalise import unit


def test_vectors_have_length_1_times_a_factor_and_zero_stays_zero() -> None:
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[0, 0] = 0
    expected = torch.nn.functional.normalize(x, dim=-1)
    torch.testing.assert_close(unit(x), expected)
    torch.testing.assert_close(unit(x, 3.0), 3 * expected)
    assert unit(x.bfloat16()).dtype == torch.bfloat16


def test_gradients_are_those_of_finite_differences() -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    factor = torch.tensor([[1.0], [2.0], [-0.5]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: unit(x, factor), x)


def test_very_short_vectors_have_finite_gradients() -> None:
    x = torch.full((1, 4), 1e-30, requires_grad=True)
    (gradient,) = torch.autograd.grad(unit(x)[..., 0].sum(), x)
    assert gradient.isfinite().all()


@pytest.mark.parametrize(
    "line", ["euclidean | softmax", "cosine | softmax", "dot | relu", "additive | softmax", "dot | identity"]
)
def test_second_derivatives_are_refused_or_right(line: str) -> None:
    q = torch.randn(1, 2, 6, 4, dtype=torch.float64, requires_grad=True)
    k = torch.randn(1, 2, 6, 4, dtype=torch.float64)
    with pytest.raises((KernelError, RuntimeError), match=r"second derivatives|Trying to backward through"):
        torch.autograd.grad(torch.autograd.grad(attend(q, k, k, line).sum(), q, create_graph=True)[0].sum(), q)
    (gradient,) = torch.autograd.grad(attend(q, k, k, line, kernel="reference").square().sum(), q, create_graph=True)
    assert torch.autograd.grad(gradient.square().sum(), q)[0].abs().sum() > 0
