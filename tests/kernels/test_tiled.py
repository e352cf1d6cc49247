"""The tiled operator: what torch is told about it, and which weights are kept."""

import pytest
import torch

from attnlab import attend, explain
from attnlab.kernels.tiled import MAX_STORED_WEIGHTS, stores_weights, tiled
from attnlab.mechanisms import Mechanism


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("pairs", ["dot", "angle", "additive", "manhattan", "minkowski", "chebyshev", "euclidean"])
def test_the_tiled_operator_is_what_it_tells_torch(pairs: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    # Strided, as a model's projections come.
    q, k, v = (
        torch.randn(2, 9, 3, 5, generator=generator).transpose(1, 2).to(dtype).requires_grad_() for _ in range(3)
    )
    extra = {"additive": torch.ones(3, 5), "dot": torch.zeros(0), "angle": torch.zeros(0)}.get(
        pairs, torch.full((3, 1), 3.0)
    )
    num_kept = 2 * 3 * 9 * 9 if pairs in ("additive", "manhattan", "chebyshev") else 0
    how = (None, None, pairs, "softmax", True, 0.0, 0, 0.0, num_kept)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(tiled, (q, k, v, extra.to(dtype).requires_grad_(), *how), test_utils=tests)


@pytest.mark.parametrize(
    "line", ["dot | relu", "angle | softmax", "additive | softmax", "dot | argmax(straight_through=true)"]
)
def test_many_more_queries_than_keys_see_nothing_at_first(line: str) -> None:
    q, k, v = torch.randn(1, 2, 300, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    out = attend(q, k, v, line, causal=True)
    assert (out[:, :, :295] == 0).all()
    torch.testing.assert_close(out[:, :, 295:], attend(q[:, :, 295:], k, v, line, causal=True))


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("additive | softmax", True),
        ("dot | relu", False),
        ("minkowski(p=3) | softmax", False),
        ("additive | gelu", False),
    ],
)
def test_weights_are_kept_for_costly_scores_of_small_problems(line: str, is_kept: bool) -> None:
    mechanism = Mechanism.parse(line)
    assert stores_weights(mechanism, MAX_STORED_WEIGHTS) is is_kept
    assert not stores_weights(mechanism, MAX_STORED_WEIGHTS + 1)


def test_a_mask_that_tiles_cannot_express_is_refused() -> None:
    assert "mask(after)" in explain("dot | softmax | mask(after)", length=8, causal=True).refused["blockwise"]
    assert explain("dot | softmax | mask(after)", length=8).kernel == "sdpa"
