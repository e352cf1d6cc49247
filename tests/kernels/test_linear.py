"""Linear attention three ways: at once, by chunks, and one token at a time with a state that does not grow."""

from __future__ import annotations

import pytest
import torch

from attnlab.errors import KernelError
from attnlab.kernels import attend, initial_values
from attnlab.kernels.linear import LinearState, step
from attnlab.mechanisms import Mechanism

LINES = [
    "dot | identity",
    "cosine | identity(divide=n)",
    "cosine | identity(divide=learned)",
    "cosine(scale=learned) | identity(divide=sqrt_n)",
    "dot(scale=learned) | identity(divide=learned, divide_at=key)",
]


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("line", LINES)
def test_chunks_and_single_tokens_give_the_parallel_form(line: str, length: int) -> None:
    mechanism = Mechanism.parse(line)
    shape = (3, 2, 2, length, 8)
    q, k, v = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).unbind(0)
    parameters = {name: value.double() * 1.1 for name, value in initial_values(mechanism, 2, 8, 8).items()}
    whole = attend(q, k, v, mechanism, causal=True, kernel="reference", parameters=parameters)
    chunked = attend(q, k, v, mechanism, causal=True, kernel="linear", parameters=parameters)
    torch.testing.assert_close(chunked, whole)
    state: LinearState | None = None
    for i in range(length):
        token = slice(i, i + 1)
        out, state = step(mechanism, q[:, :, token], k[:, :, token], v[:, :, token], state, parameters)
        torch.testing.assert_close(out, whole[:, :, token])
        assert state.sums.shape == (2, 2, 8, 8)
        assert state.count == i + 1


def test_what_has_no_constant_state_says_why() -> None:
    q = torch.zeros(1, 1, 1, 4)
    with pytest.raises(KernelError, match=r"constant state.*identity weights"):
        step(Mechanism.parse("dot | softmax"), q, q, q, None, {})
