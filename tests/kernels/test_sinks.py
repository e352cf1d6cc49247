"""Softmax with a sink: the form for other devices is the CPU's function, and a huge sink leaves nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.kernels.sinks import _attend_with_key, attend_with_sink
from attnlab.kernels.visibility import Visibility


def solve(attend: object, num_queries: int, causal: bool, mask: Tensor | None) -> list[Tensor]:
    draw = torch.Generator().manual_seed(3)
    shapes = ((2, 3, num_queries, 8), (2, 3, 20, 8), (2, 3, 20, 5), (3,))
    q, k, v, sink = (torch.randn(s, generator=draw, dtype=torch.float64).requires_grad_() for s in shapes)
    visibility = Visibility(num_queries, 20, causal, mask, q.device)
    out = attend(q, k, v, sink, visibility, 0.3)  # type: ignore[operator]
    return [out, *torch.autograd.grad(out.sin().sum(), [q, k, v, sink])]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_queries", [20, 7, 25])
@pytest.mark.parametrize("kind", ["none", "keys", "pairs"])
def test_a_sink_is_one_more_key_without_value(kind: str, num_queries: int, causal: bool) -> None:
    shape = {"keys": (2, 1, 1, 20), "pairs": (2, 1, num_queries, 20)}.get(kind)
    mask = None if shape is None else torch.rand(shape, generator=torch.Generator().manual_seed(1)) > 0.4
    for ours, theirs in zip(
        solve(attend_with_sink, num_queries, causal, mask), solve(_attend_with_key, num_queries, causal, mask),
        strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-10)


def test_a_sink_far_above_all_scores_takes_everything() -> None:
    q, k, v = torch.randn(3, 1, 2, 9, 4)
    out = attnlab.attend(q, k, v, "dot | softmax(sink=learned)", parameters={"softmax_sink": torch.full((2,), 200.0)})
    assert float(out.abs().max()) == 0
