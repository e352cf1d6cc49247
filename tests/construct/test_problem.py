"""What a construction is given: any container of numbers, and an error in plain words for anything else."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import attnlab
from attnlab.construct import EXAMPLE_KEYS, average, select
from attnlab.construct.problem import read_problem
from attnlab.errors import AttnlabError, RequestError, ShapeError

KEYS = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]


@pytest.mark.parametrize(
    "keys",
    [
        KEYS,
        tuple(map(tuple, KEYS)),
        np.array(KEYS),
        np.array(KEYS, dtype=np.float32),
        np.array(KEYS, dtype=np.int64),
        torch.tensor(KEYS),
        torch.tensor(KEYS, requires_grad=True),
        torch.tensor(KEYS).int(),
        [torch.tensor(row) for row in KEYS],
    ],
    ids=["lists", "tuples", "float64", "float32", "int64", "tensor", "with gradient", "int tensor", "list of tensors"],
)
def test_numbers_come_in_any_container(keys: Any) -> None:
    expected = select(KEYS, 0).query
    assert expected is not None
    found = select(keys, 0).query
    assert found is not None
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected)


def test_what_is_given_is_not_changed_by_what_is_made_of_it() -> None:
    keys = torch.tensor(KEYS, dtype=torch.float64)
    problem = select(keys, 0).problem
    keys.zero_()
    assert problem.keys.tolist() == KEYS


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        ([1.0, 2.0], ShapeError, r"one row each: \[n, d\]; the shape is \(2,\)"),
        ([[[1.0]]], ShapeError, r"the shape is \(1, 1, 1\)"),
        ([], ShapeError, "keys must be"),
        ([[], []], ShapeError, "empty"),
        ([[1.0, 2.0], [3.0]], ShapeError, "rows of one length"),
        ([["one"]], ShapeError, "must be numbers"),
        ([[1.0, math.nan]], RequestError, "finite"),
        ([[1.0, None]], RequestError, "finite"),
        ([[math.inf, 1.0]], RequestError, "finite"),
        (torch.ones(2, 2, dtype=torch.bool), RequestError, "real numbers"),
        (torch.ones(2, 2, dtype=torch.complex64), RequestError, "real numbers"),
    ],
)
def test_keys_that_are_none_are_refused(keys: Any, error: type[AttnlabError], words: str) -> None:
    with pytest.raises(error, match=words):
        select(keys, 0)


@pytest.mark.parametrize(
    ("index", "words"),
    [(3, "there are keys 0 to 2"), (-1, "no key -1"), (True, "not by True"), (1.0, "not by 1.0"), ("0", "not by '0'")],
)
def test_a_key_is_named_by_its_number(index: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        select(KEYS, index)


def test_numbers_of_other_libraries_name_a_key_too() -> None:
    for index in (np.int64(1), torch.tensor(1)):
        assert select(KEYS, index).subset == (1,)


@pytest.mark.parametrize(
    ("subset", "words"),
    [
        ([0, 0], "key 0 twice"),
        ([], "at least one"),
        ([5], "no key 5"),
        ([True], "not by True"),
        (1, "a list"),
        ("01", "a list"),
    ],
)
def test_a_subset_names_each_key_once(subset: Any, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        average(KEYS, subset)


@pytest.mark.parametrize("subset", [(1, 0), {0, 1}, range(2), np.array([0, 1]), torch.tensor([1, 0])])
def test_a_subset_comes_in_any_container(subset: Any) -> None:
    assert average(KEYS, subset).subset == (0, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tolerance": 0.0}, "above 0 and below 0.5"),
        ({"tolerance": 0.5}, "another key may weigh as much"),
        ({"tolerance": math.nan}, "above 0"),
        ({"tolerance": "small"}, "above 0"),
        ({"scale": 0}, "scale must be a number above 0"),
        ({"scale": -1.0}, "above 0"),
        ({"scale": math.inf}, "above 0"),
        ({"scale": True}, "above 0"),
    ],
)
def test_settings_outside_their_range_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        select(KEYS, 0, **settings)


def test_values_have_a_row_for_each_key() -> None:
    with pytest.raises(ShapeError, match="one row for each of 3 keys; they have 2"):
        select(KEYS, 0, values=[[1.0], [2.0]])


def test_weights_and_output_are_those_of_attend() -> None:
    problem = read_problem(EXAMPLE_KEYS, np.arange(8.0).reshape(4, 2), scale=0.7)
    queries = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert problem.values is not None
    torch.testing.assert_close(problem.weights(queries), attnlab.weights(queries, problem.keys, scale=0.7))
    torch.testing.assert_close(
        problem.output(queries), attnlab.attend(queries, problem.keys, problem.values, scale=0.7)
    )
    torch.testing.assert_close(problem.weights(queries[0]), problem.scores(queries[0]).softmax(0))


def test_the_scale_is_dots_own_unless_said() -> None:
    problem = read_problem(EXAMPLE_KEYS)
    query = torch.ones(3, dtype=torch.float64)
    torch.testing.assert_close(problem.weights(query), attnlab.weights(query[None], problem.keys, "dot | softmax")[0])
