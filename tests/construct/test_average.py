"""`average`: all keys exactly, some keys exactly alike, and the mean of the keys, which is not enough."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import attnlab
from attnlab.construct import EXAMPLE_KEYS, average
from attnlab.construct.focus import misplaced
from attnlab.construct.separation import Array
from tests.construct.strategies import keys_of_any_kind


@settings(max_examples=40)
@given(keys_of_any_kind())
def test_all_keys_are_averaged_exactly_by_zero(keys: Array) -> None:
    found = average(keys)
    assert found.feasible
    assert found.query is not None
    assert not found.query.any()
    assert found.error == 0
    assert found.weights is not None
    assert found.weights.tolist() == [1 / len(keys)] * len(keys)


def test_two_of_the_examples() -> None:
    found = average(EXAMPLE_KEYS, [0, 1])
    assert found.feasible
    assert found.weights is not None
    assert found.weights[:2].tolist() == pytest.approx([0.495, 0.495])
    # Much stronger, it still averages.
    assert found.query is not None
    strong = attnlab.weights(1000 * found.query[None], found.problem.keys)[0]
    torch.testing.assert_close(strong, found.target, atol=1e-9, rtol=0)


def test_the_mean_of_the_keys_is_not_enough() -> None:
    found = average(EXAMPLE_KEYS, [0, 1], scale=1.0)
    assert [round(weight, 3) for weight in found.naive.tolist()] == [0.356, 0.356, 0.140, 0.148]
    expected = attnlab.weights(found.naive_query[None], found.problem.keys, scale=1.0)[0]
    torch.testing.assert_close(found.naive, expected)
    # It collapses onto one key when scaled up, because the keys' lengths differ.
    collapsed = found.problem.weights(5000 * found.naive_query)
    assert float(collapsed[1]) > 0.999
    assert misplaced(collapsed, found.target) > 0.49


@pytest.mark.parametrize(
    ("keys", "subset"),
    [
        ([[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]], [0, 1]),
        ([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]], [0, 1]),
        ([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], [0, 1]),
        ([[1.0], [2.0], [5.0]], [0, 1]),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1]),
    ],
    ids=["between", "on the line beyond", "crossing diagonals", "one dimension", "duplicate"],
)
def test_what_cannot_be_averaged_comes_with_the_proof(keys: list[list[float]], subset: list[int]) -> None:
    found = average(keys, subset)
    assert found.feasible is False
    assert found.combination is not None
    assert found.affine is not None
    torch.testing.assert_close(found.affine @ found.problem.keys, found.combination @ found.problem.keys)
    assert (found.combination >= 0).all()
    assert not found.combination[subset].any()
    assert float(found.affine.sum()) == pytest.approx(1)
    assert 0 < found.error <= 0.5
    assert "No query averages k0 and k1" in str(found)


def test_a_far_point_of_the_line_leaves_an_uneven_query_open() -> None:
    # 501·k0 − 500·k1 = k2: hardly uneven scores of k0 and k1 are enough to leave k2 far below.
    found = average([[0.0, 0.0], [1.0, 0.0], [-500.0, 0.0]], [0, 1])
    assert found.feasible is False
    assert found.error < found.problem.tolerance
    assert "not excluded" in str(found)


def test_duplicates_within_the_subset_are_no_hindrance() -> None:
    found = average([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert found.feasible
    assert found.weights is not None
    assert found.weights[0] == found.weights[1]


def test_almost_all_keys_need_hardly_a_query() -> None:
    keys = np.eye(200)
    found = average(keys, range(199))
    assert found.feasible
    assert found.strength == 0
    assert found.error == pytest.approx(1 / 200)
    assert "q = 0 averages 199 keys" in str(found)
