"""`argmax`: the selected value, and the zero gradient beside softmax's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlab
from attnlab.construct import EXAMPLE_KEYS, argmax
from attnlab.construct.separation import Array
from attnlab.errors import ShapeError
from tests.construct.strategies import keys_of_any_kind

QUERY = [6.0, 1.0, 0.0]
VALUES = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 2.0]]


def test_it_returns_the_value_of_the_best_key() -> None:
    found = argmax(EXAMPLE_KEYS, QUERY, VALUES)
    assert found.index == 1
    assert found.weights.tolist() == [0, 1, 0, 0]
    assert found.output.tolist() == VALUES[1]
    assert not found.is_tie


def test_its_gradient_is_zero_and_softmaxs_is_not() -> None:
    found = argmax(EXAMPLE_KEYS, QUERY, VALUES)
    assert found.gradient.shape == found.softmax_gradient.shape == (2, 3)
    assert not found.gradient.any()
    step = 1e-6
    for coordinate in range(3):
        moved = found.query.clone()
        moved[coordinate] += step
        slope = (found.problem.output(moved) - found.softmax_output) / step
        torch.testing.assert_close(found.softmax_gradient[:, coordinate], slope, atol=1e-5, rtol=0)
    assert "norm 0 for argmax and" in str(found)


@settings(max_examples=40)
@given(keys_of_any_kind(), st.integers(0, 2**31))
def test_both_are_the_kernels_own(keys: Array, seed: int) -> None:
    size = float(abs(keys).max() or 1)
    query = torch.randn(keys.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) / size
    found = argmax(keys, query)
    k = torch.from_numpy(keys)
    torch.testing.assert_close(found.weights, attnlab.weights(query[None], k, "dot | argmax")[0])
    torch.testing.assert_close(found.softmax_weights, attnlab.weights(query[None], k)[0])
    assert not found.gradient.any()
    assert found.error == pytest.approx(1 - float(found.softmax_weights[found.index]))


def test_the_first_of_several_best_keys_is_taken() -> None:
    found = argmax([[1.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [1.0, 0.0])
    assert found.index == 1
    assert found.is_tie
    assert "the first of several" in str(found)


def test_a_query_is_as_wide_as_the_keys() -> None:
    with pytest.raises(ShapeError, match="query must be 3 numbers"):
        argmax(EXAMPLE_KEYS, [1.0, 2.0])
