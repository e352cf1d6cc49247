"""The backward pass of squared distances: the reference's gradients over several tiles, and what torch is told."""

import pytest
import torch
from torch import Tensor

from attnlab import attend
from attnlab.kernels.logsumexp import KEYS, ROWS, logsumexp_backward


def differentiate(inputs: list[Tensor], mask: Tensor | None, causal: bool, kernel: str) -> tuple[Tensor, ...]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = attend(leaves[0], leaves[1], leaves[2], "euclidean | softmax", mask=mask, causal=causal, kernel=kernel)
    return torch.autograd.grad(out.sin().sum(), leaves)


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize(
    ("num_queries", "num_keys", "causal"), [(KEYS + 5, KEYS + 5, True), (9, 9, True), (ROWS + 3, 7, False)]
)
def test_gradients_are_the_references(num_queries: int, num_keys: int, causal: bool, is_padded: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = ((num_queries, 3), (num_keys, 3), (num_keys, 5))
    inputs = [torch.randn(1, 2, *size, generator=generator, dtype=torch.float64) for size in sizes]
    mask = torch.arange(num_keys) >= 2 if is_padded else None
    found = differentiate(inputs, mask, causal, "sdpa")
    for ours, theirs in zip(found, differentiate(inputs, mask, causal, "reference"), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_operator_is_what_it_tells_torch() -> None:
    grad, q, k, v, out = torch.randn(5, 3, 7, 4, generator=torch.Generator().manual_seed(0))
    rest = (torch.zeros(3, 7), torch.zeros(3, 7), 0.5, True)
    torch.library.opcheck(logsumexp_backward, (grad, q, k, v, out, *rest), test_utils="test_schema")
    torch.library.opcheck(logsumexp_backward, (grad, q, k, v, out, *rest), test_utils="test_faketensor")
