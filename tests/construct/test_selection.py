"""`select` and `select_all`: one key, each key, and the keys that nothing selects."""

import pytest
import torch
from hypothesis import given, settings

import attnlab
from attnlab.construct import EXAMPLE_KEYS, select, select_all
from attnlab.construct.separation import Array
from tests.construct.strategies import keys_of_any_kind

MIDDLE = [sum(column) / 4 for column in zip(*EXAMPLE_KEYS, strict=True)]


def test_each_example_key_can_be_selected() -> None:
    for j in range(4):
        found = attnlab.construct.select(EXAMPLE_KEYS, j)
        assert found.feasible
        assert found.weights is not None
        assert float(found.weights[j]) >= 0.99


def test_a_key_inside_the_others_comes_with_the_proof() -> None:
    found = select([*EXAMPLE_KEYS, MIDDLE], 4)
    assert found.feasible is False
    assert found.combination is not None
    assert found.combination[4] == 0
    torch.testing.assert_close(found.combination @ found.problem.keys, found.problem.keys[4])
    assert str(found) == (
        "No query selects k4: k4 = 0.25·k0 + 0.25·k1 + 0.25·k2 + 0.25·k3 lies in the convex hull of the other keys, "
        "so one of them always scores at least as much. k4 never gets more than 0.2."
    )


@pytest.mark.parametrize(
    ("keys", "j", "feasible"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], 0, False),
        ([[0.0], [1.0], [2.0]], 1, False),
        ([[0.0], [1.0], [2.0]], 2, True),
        ([[0.0, 0.0], [1.0, 1.0]], 0, True),
        ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], 1, False),
        ([[1.0, 1.0], [0.0, 0.0], [2.0, 2.0], [3.0, 3.0]], 0, False),
        ([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 2, True),
        ([[5.0]], 0, True),
    ],
    ids=["duplicate", "between", "end", "zero key", "all zero", "collinear", "corner", "alone"],
)
def test_degenerate_keys(keys: list[list[float]], j: int, feasible: bool) -> None:
    assert select(keys, j).feasible is feasible


def test_all_keys_make_the_identity_map() -> None:
    found = select_all(EXAMPLE_KEYS)
    assert found.feasible
    assert found.impossible == ()
    assert found.query.shape == (4, 3)
    torch.testing.assert_close(found.weights, torch.eye(4, dtype=torch.float64), atol=0.01, rtol=0)
    torch.testing.assert_close(found.weights, attnlab.weights(found.query, found.problem.keys))
    assert found.error == max(one.error for one in found.each) <= 0.01
    values = torch.arange(8, dtype=torch.float64).reshape(4, 2)
    torch.testing.assert_close(select_all(EXAMPLE_KEYS, values=values).output, values, atol=0.1, rtol=0)


def test_keys_that_cannot_be_selected_are_named() -> None:
    found = select_all([*EXAMPLE_KEYS, MIDDLE])
    assert found.feasible is False
    assert found.impossible == (4,)
    assert found.query[4].isnan().all()
    assert not found.query[:4].isnan().any()
    assert found.error == pytest.approx(0.8)
    assert "No query selects k4: it lies" in str(found)
    twins = select_all([[1.0], [1.0]])
    assert twins.impossible == (0, 1)
    assert "k0 and k1: each lies" in str(twins)


@settings(max_examples=40)
@given(keys_of_any_kind())
def test_all_is_each(keys: Array) -> None:
    found = select_all(keys)
    assert found.weights.shape == (len(keys), len(keys))
    assert found.impossible == tuple(j for j in range(len(keys)) if select(keys, j).feasible is False)
