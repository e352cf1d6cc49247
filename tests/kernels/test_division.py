"""Division by the length: of the output by what a query sees, or of the values by the position of their key."""

import pytest
import torch
from torch import Tensor

from attnlab import attend, explain, weights
from attnlab.kernels.division import as_divisor, divide


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


def test_division_at_the_key_divides_by_its_position() -> None:
    q, k, v = tensors(1, 1, 6, 4)
    w = weights(q, k, "cosine | identity(divide=n, divide_at=key)", causal=True)
    plain = weights(q, k, "cosine | identity", causal=True)
    torch.testing.assert_close(w, plain / torch.arange(1, 7))
    torch.testing.assert_close(attend(q, k, v, "cosine | identity(divide=n, divide_at=key)", causal=True), w @ v)


def test_a_divisor_is_at_least_1_and_at_least_fp32() -> None:
    divisor = as_divisor(torch.tensor([0, 3]), torch.bfloat16)
    assert divisor.tolist() == [1, 3]
    assert divisor.dtype == torch.float32


def test_dividing_keeps_the_dtype_and_none_divides_nothing() -> None:
    x = torch.ones(2, dtype=torch.bfloat16)
    assert divide(x, None) is x
    assert divide(x, torch.tensor([2.0, 4.0])).dtype == torch.bfloat16


@pytest.mark.parametrize("divide_by", ["n", "sqrt_n", "learned"])
@pytest.mark.parametrize("kernel", ["linear", "blockwise"])
def test_every_divisor_is_the_references(divide_by: str, kernel: str) -> None:
    q, k, v = tensors(2, 2, 9, 4)
    line = f"dot | identity(divide={divide_by}, divide_at=key)"
    mask = torch.arange(9) < torch.tensor([9, 6])[:, None, None, None]
    found = attend(q, k, v, line, causal=True, mask=mask, kernel=kernel)
    torch.testing.assert_close(found, attend(q, k, v, line, causal=True, mask=mask, kernel="reference"))


def test_a_key_has_no_single_count_under_a_mask_of_pairs() -> None:
    explanation = explain("dot | relu(divide=n, divide_at=key)", length=8, causal=True, mask="pairs")
    assert "differs between queries" in explanation.refused["blockwise"]
    assert explanation.kernel == "rowwise"
