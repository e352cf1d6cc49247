"""`strength`: the closed form for two of n orthonormal keys, as the kernel has it."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlab
from attnlab.construct import strength
from attnlab.errors import RequestError


def test_the_sum_of_two_keys_alone_is_weak() -> None:
    found = strength(10, 64, 0.45)
    assert found.alone == pytest.approx(1 / (2 + 8 * math.exp(-1 / 8)))
    assert round(found.alone, 3) == 0.110


@settings(max_examples=40)
@given(st.integers(3, 40), st.integers(3, 96), st.floats(1e-6, 0.499999))
def test_the_kernel_gives_the_weight_that_was_asked_for(n: int, head_dim: int, weight: float) -> None:
    found = strength(n, head_dim, weight)
    assert found == pytest.approx(math.sqrt(head_dim) * math.log((n - 2) * weight / (1 - 2 * weight)), abs=1e-9)
    keys = found.problem.keys
    assert (keys[:2] @ keys.T)[:, 2:].abs().max() == 0
    if n <= head_dim:
        torch.testing.assert_close(keys @ keys.T, torch.eye(n, dtype=torch.float64))
    expected = attnlab.weights(found.query[None], keys)[0]
    torch.testing.assert_close(found.weights, expected)
    assert expected[:2].tolist() == pytest.approx([weight] * 2)
    assert found.error == pytest.approx(1 - 2 * weight, abs=1e-9)
    torch.testing.assert_close(found.output, found.weights)


def test_it_is_a_number() -> None:
    found = strength(10, 64, 0.45)
    assert isinstance(found, float)
    assert f"{found:.2f}" == "28.67"
    assert found + 1 == pytest.approx(29.6681, abs=1e-3)
    assert "½ comes only in the limit" in str(found)


def test_even_weights_need_none_and_less_needs_the_opposite() -> None:
    assert strength(8, 16, 1 / 8) == pytest.approx(0)
    assert strength(8, 16, 0.05) < 0


def test_two_keys_share_evenly_at_every_strength() -> None:
    found = strength(2, 64, 0.5)
    assert float(found) == 0
    assert found.weights.tolist() == [0.5, 0.5]
    assert "every strength" in str(found)
    with pytest.raises(RequestError, match=r"never 0\.4"):
        strength(2, 64, 0.4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 64, 0.5), "only in the limit"),
        ((10, 64, 0.7), "only in the limit"),
        ((10, 64, 0.0), "above 0 and below 0.5"),
        ((10, 64, math.nan), "above 0 and below 0.5"),
        ((10, 64, "half"), "must be a number"),
        ((1, 64, 0.4), "n must be a whole number from 2 on"),
        ((2.5, 64, 0.4), "n must be"),
        ((True, 64, 0.4), "n must be"),
        ((10, 0, 0.4), "head_dim must be"),
        ((10, 2, 0.4), "head_dim of 3 or more"),
    ],
)
def test_what_has_no_strength_is_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        strength(*arguments)
