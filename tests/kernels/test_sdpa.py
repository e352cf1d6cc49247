"""The fused kernel: torch's own attention, any scale, and masks that leave a query nothing to see."""

import pytest
import torch
from torch import Tensor

from attnlab import attend, explain


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


def test_the_baseline_is_torchs_own_attention() -> None:
    q, k, v = tensors(2, 3, 17, 8)
    for causal in (False, True):
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        for kernel in ("sdpa", "blockwise", "rowwise", "reference"):
            torch.testing.assert_close(attend(q, k, v, causal=causal, kernel=kernel), expected)


@pytest.mark.parametrize("scale", [-3.0, 0.0, -0.001, 5.0])
def test_a_scale_of_any_sign_is_a_scale(scale: float) -> None:
    q, k, v = tensors(1, 2, 300, 8)
    line = f"dot(scale={scale}) | softmax"
    mask = torch.arange(300) < 280
    for given in (None, mask):
        expected = attend(q, k, v, line, causal=True, mask=given, kernel="reference")
        for kernel in ("sdpa", "blockwise"):
            found = attend(q, k, v, line, causal=True, mask=given, kernel=kernel)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("line", ["dot | softmax", "cosine | softmax", "euclidean | softmax"])
@pytest.mark.parametrize("num_queries", [3, 7, 9])
def test_queries_before_all_keys_see_nothing(line: str, num_queries: int) -> None:
    q, k, v = (torch.randn(1, 2, n, 4, generator=torch.Generator().manual_seed(n)) for n in (num_queries, 7, 7))
    mask = torch.rand(1, 1, num_queries, 7, generator=torch.Generator().manual_seed(0)) > 0.5
    mask[:, :, 1] = False
    for given in (None, mask):
        out = attend(q, k, v, line, causal=True, mask=given, kernel="sdpa")
        torch.testing.assert_close(out, attend(q, k, v, line, causal=True, mask=given, kernel="reference"))


def test_dropout_and_other_weights_are_left_to_other_kernels() -> None:
    assert "dropout" in explain("dot | softmax", length=8, dropout=0.1).refused["sdpa"]
    assert "softmax" in explain("dot | relu", length=8).refused["sdpa"]
