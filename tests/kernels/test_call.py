"""A call describes itself as a request, and gives a stage what it asks for."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.errors import RequestError
from attnlab.kernels.call import Request, at_least_float, check_sizes
from attnlab.kernels.prepare import prepare
from attnlab.mechanisms import Mechanism, Params, Positions, Score, stage


def test_a_request_is_the_call_without_its_tensors() -> None:
    q, k, v = torch.zeros(2, 4, 3, 8), torch.zeros(2, 2, 7, 8), torch.zeros(2, 2, 7, 5)
    mechanism = Mechanism.parse("dot | relu")
    call, num_axes = prepare(q, k, v, mechanism, causal=True, dropout=0.5, mask=torch.ones(7, dtype=torch.bool))
    expected = Request(mechanism, 3, 7, 8, 5, 4, 2, True, "keys", 0.5, torch.float32, "cpu")
    assert call.request == expected
    assert num_axes == 4
    pairs, _ = prepare(q, k, v, mechanism, mask=torch.ones(3, 7, dtype=torch.bool))
    assert pairs.request == dataclasses.replace(expected, causal=False, mask="pairs", dropout=0.0)
    assert prepare(q[0, 0], k[0, 0], v[0, 0], mechanism)[0].request.mask == "none"


def test_a_stage_gets_what_it_asks_for_or_an_error(own_stages: None) -> None:
    @stage("asking")
    @dataclass(frozen=True)
    class Asking(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            return q @ k.mT

    x = torch.zeros(1, 1, 4, 2)
    call, _ = prepare(x, x, x, "asking | relu")
    given = call.gather_needs(call.mechanism.score, None)
    assert given["positions"].keys.flatten().tolist() == [0, 1, 2, 3]
    assert given["visible"].all()
    with pytest.raises(RequestError, match="needs positions, and this call has none: pass positions="):
        dataclasses.replace(call, positions=None).gather_needs(call.mechanism.score, None)


def test_reductions_are_at_least_in_fp32() -> None:
    dtypes = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
    assert [at_least_float(dtype) for dtype in dtypes] == [torch.float32] * 3 + [torch.float64]


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", None])
def test_a_size_that_is_not_a_positive_integer_is_refused(size: Any) -> None:
    check_sizes(batch=1, length=3)
    with pytest.raises(RequestError, match=f"length must be a positive integer, not {size!r}"):
        check_sizes(batch=1, length=size)
