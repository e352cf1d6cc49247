"""`place_key`: one more key that a given query averages with others, or returns alone."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlab
from attnlab.construct import EXAMPLE_KEYS, average, place_key
from attnlab.construct.focus import compute_error
from attnlab.errors import RequestError, ShapeError

QUERY = average(EXAMPLE_KEYS, [0, 1], tolerance=1e-4).query


def test_a_query_that_averages_two_values_averages_three() -> None:
    found = place_key(EXAMPLE_KEYS, QUERY)
    assert found.feasible
    assert found.subset == (0, 1, 4)
    assert found.weights[[0, 1, 4]].tolist() == pytest.approx([1 / 3] * 3, abs=1e-4)
    keys = torch.cat([torch.tensor(EXAMPLE_KEYS, dtype=torch.float64), found.key[None]])
    torch.testing.assert_close(found.weights, attnlab.weights(found.query[None], keys)[0])
    # The shortest key of that score lies along the query.
    assert float(found.key @ found.query) == pytest.approx(float(found.key.norm() * found.query.norm()))


def test_the_output_is_the_mean_of_three_values() -> None:
    values = [[3.0], [6.0], [100.0], [200.0], [9.0]]
    found = place_key(EXAMPLE_KEYS, QUERY, values=values)
    assert float(found.output) == pytest.approx(6.0, abs=0.05)
    with pytest.raises(ShapeError, match="one row for each of 5 keys; they have 4"):
        place_key(EXAMPLE_KEYS, QUERY, values=values[:4])


def test_a_key_of_norm_one_is_returned_by_a_strong_query() -> None:
    unit = torch.eye(4, 6, dtype=torch.float64)
    query = 100 * torch.ones(6, dtype=torch.float64)
    found = place_key(unit, query, "select")
    assert found.feasible
    assert float(found.key.norm()) == pytest.approx(1)
    assert float(found.weights[4]) >= 0.99
    assert found.subset == (4,)
    assert "is returned with error" in str(found)


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 5), st.sampled_from([0.1, 1.0, 30.0]))
def test_no_key_of_its_norm_is_returned_with_less_error(seed: int, num_keys: int, dim: int, size: float) -> None:
    generator = np.random.default_rng(seed)
    keys, query = generator.normal(size=(num_keys, dim)), size * generator.normal(size=dim)
    found = place_key(keys, query, "select")
    for other in generator.normal(size=(50, dim)):
        extended = torch.from_numpy(np.vstack([keys, other / np.linalg.norm(other)]))
        assert float(attnlab.weights(found.query[None], extended)[0, -1]) <= float(found.weights[-1]) + 1e-12
    longer = place_key(keys, query, "select", norm=found.least_norm * (1 + 1e-9)) if found.least_norm else found
    assert longer.error == pytest.approx(0.01, rel=1e-4) or found.least_norm == 0
    if math.isfinite(found.strength):
        stronger = place_key(keys, query * found.strength / np.linalg.norm(query) * (1 + 1e-9), "select")
        assert stronger.feasible


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 5), st.sampled_from([0.1, 1.0, 10.0]))
def test_where_the_error_is_too_much_no_key_has_less(seed: int, num_keys: int, dim: int, size: float) -> None:
    generator = np.random.default_rng(seed)
    keys, query = generator.normal(size=(num_keys, dim)), size * generator.normal(size=dim)
    found = place_key(keys, query)
    if found.feasible:
        return
    target = torch.zeros(num_keys + 1, dtype=torch.float64)
    target[list(found.subset)] = 1 / len(found.subset)
    for part in np.linspace(-20, 20, 200):
        extended = torch.from_numpy(np.vstack([keys, part * query / (query @ query)]))
        assert compute_error(attnlab.weights(found.query[None], extended)[0], target) >= found.error - 1e-9
    assert str(found).startswith("No key makes the query average")


def test_a_query_of_zero_weighs_all_keys_alike() -> None:
    found = place_key([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    assert found.feasible
    assert found.weights.tolist() == pytest.approx([1 / 3] * 3)
    alone = place_key([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], "select")
    assert not alone.feasible
    assert alone.least_norm == alone.strength == math.inf
    assert str(alone).startswith("No key is returned: a query of 0")


def test_what_is_missing_for_a_selection_is_said() -> None:
    found = place_key(EXAMPLE_KEYS, [3.0, 3.0, 0.0], "select")
    assert not found.feasible
    assert "the query must have norm" in str(found)
    assert "the key must have norm" in str(found)
    longer = place_key([[5.0, 0.0]], [1.0, 0.0], "select")
    assert "no stronger query helps" in str(longer)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"goal": "averge"}, "did you mean 'average'"),
        ({"goal": "select", "subset": [0]}, "subset belongs to goal='average'"),
        ({"norm": 2.0}, "norm belongs to goal='select'"),
        ({"goal": "select", "norm": 0.0}, "norm must be a number above 0"),
        ({"goal": "select", "norm": "long"}, "norm must be a number above 0"),
        ({"subset": [7]}, "no key 7"),
    ],
)
def test_what_does_not_belong_together_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        place_key(EXAMPLE_KEYS, QUERY, **arguments)
