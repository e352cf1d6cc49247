"""Scores as matrix products: their factors, and distances far from the origin."""

import pytest
import torch

from attnlab import attend
from attnlab.kernels.blockwise import choose_origin, make_factors
from attnlab.mechanisms import Mechanism


@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.parametrize("line", ["dot", "dot(scale=2)", "cosine", "cosine(scale=3)", "euclidean"])
def test_the_product_of_the_factors_is_the_score(line: str, offset: float) -> None:
    score = Mechanism.parse(f"{line} | relu").score
    q, k = torch.randn(2, 1, 2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + offset
    left, right = make_factors(score, q, k, {})
    torch.testing.assert_close(left @ right.mT, score(q, k, {}))


def test_the_origin_moves_only_to_vectors_far_out() -> None:
    q, k = torch.randn(2, 1, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    assert (choose_origin(q, k) == 0).all()
    assert torch.equal(choose_origin(q + 100, k + 100), (k + 100)[:, :, :1])


@pytest.mark.parametrize("kernel", ["sdpa", "blockwise"])
def test_a_common_offset_does_not_blur_distances(kernel: str) -> None:
    q, k, v = (x + 100 for x in torch.randn(3, 1, 2, 64, 64, generator=torch.Generator().manual_seed(0)))
    expected = attend(q.double(), k.double(), v.double(), "euclidean | softmax", kernel="reference")
    found = attend(q, k, v, "euclidean | softmax", kernel=kernel)
    assert float((found - expected).abs().max()) < 1e-3
