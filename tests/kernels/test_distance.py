"""The distance kernel: its scores are torch's distances, and it leaves matrix products to other kernels."""

import pytest
import torch

from attnlab import attend, explain

FORMS = {"manhattan": (1.0, 8**-0.5), "chebyshev": (torch.inf, 1.0), "minkowski(p=3)": (3.0, 1.0)}


@pytest.mark.parametrize("line", [*FORMS, "euclidean(squared=false)"])
def test_scores_are_negative_distances(line: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 33, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, scale = FORMS.get(line, (2.0, 8**-0.5))
    expected = torch.softmax(-scale * torch.cdist(q, k, p), -1) @ v
    torch.testing.assert_close(attend(q, k, v, f"{line} | softmax", kernel="distance"), expected)


def test_bf16_is_computed_in_fp32() -> None:
    q, k, v = torch.randn(3, 1, 2, 16, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    out = attend(q, k, v, "manhattan | softmax", kernel="distance")
    expected = attend(q.float(), k.float(), v.float(), "manhattan | softmax", kernel="distance")
    assert torch.equal(out, expected.bfloat16())


def test_other_scores_are_refused() -> None:
    for line in ("angle | relu", "euclidean | relu"):
        assert "not a matrix product" in explain(line, length=8).refused["distance"]
