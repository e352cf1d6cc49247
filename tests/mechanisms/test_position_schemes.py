"""Position schemes depend on distances, and say what they need."""

from __future__ import annotations

import pytest
import torch

from attnlab import attend, explain
from attnlab.errors import ShapeError
from attnlab.mechanisms import Mechanism

LINES = ("dot | softmax | rope", "dot | softmax | alibi", "dot | softmax | relative(buckets=8, max_distance=20)")


@pytest.mark.parametrize("line", LINES)
def test_a_common_shift_of_all_positions_changes_nothing(line: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    moved = attend(q, k, v, line, causal=True, positions=torch.arange(30) + 5)
    torch.testing.assert_close(moved, attend(q, k, v, line, causal=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("line", LINES)
def test_one_token_at_a_time_equals_all_at_once(line: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    whole = attend(q, k, v, line, causal=True)
    token = attend(q[:, :, 20:21], k[:, :, :21], v[:, :, :21], line, causal=True)
    torch.testing.assert_close(token, whole[:, :, 20:21])


def test_without_positions_the_order_of_keys_is_free() -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    order = torch.randperm(30)
    torch.testing.assert_close(attend(q, k[:, :, order], v[:, :, order], "dot | softmax | nope"), attend(q, k, v))


def test_an_odd_number_of_rotated_channels_is_refused() -> None:
    q = torch.randn(1, 2, 4, 6)
    with pytest.raises(ShapeError, match="share of head_dim=6 is 3 channels"):
        attend(q, q, q, "dot | softmax | rope(share=0.5)")


def test_schemes_have_fast_kernels() -> None:
    kernels = {line: explain(line, 512, causal=True).kernel for line in LINES}
    assert list(kernels.values()) == ["sdpa", "blockwise", "blockwise"]
    assert explain("dot | softmax | alibi | window(32)", 512, causal=True).kernel == "banded"


def test_lines_round_trip() -> None:
    for line in (*LINES, "dot | softmax | nope", "dot | softmax | rope(base=500, share=0.5)"):
        assert str(Mechanism.parse(line)) == line
    assert str(Mechanism.parse("dot | softmax | positions(model)")) == "dot | softmax"
