"""Selecting and averaging: what is found is the kernel's own, what is refused is proven."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlab
from attnlab.construct import EXAMPLE_KEYS, average, focus, select
from attnlab.construct.focus import bound_error, compute_error
from attnlab.construct.separation import Array
from tests.construct.strategies import exact_scores, keys_and_subset, keys_of_any_kind

MIDDLE = [sum(column) / 4 for column in zip(*EXAMPLE_KEYS, strict=True)]


@settings(max_examples=150)
@given(keys_and_subset(), st.sampled_from([0.3, 0.01, 1e-6]), st.sampled_from([None, 1.0, 7.0]))
def test_a_query_is_found_and_checked_by_the_kernel_or_proven_impossible(
    drawn: tuple[Array, list[int]], tolerance: float, scale: float | None
) -> None:
    keys, subset = drawn
    found = average(keys, subset, tolerance=tolerance, scale=scale)
    if found.feasible:
        assert found.query is not None
        assert found.weights is not None
        expected = attnlab.weights(found.query[None], torch.from_numpy(keys), "dot | softmax", scale=scale)[0]
        torch.testing.assert_close(found.weights, expected, rtol=0, atol=0)
        assert found.error == pytest.approx(float((expected - found.target).abs().sum() / 2))
        assert found.error <= tolerance
        return
    assert found.feasible is False
    assert found.query is None
    assert found.weights is None
    assert found.output is None
    assert found.combination is not None
    assert found.affine is not None
    assert found.strength == math.inf
    size = np.linalg.norm(keys / (np.abs(keys).max() or 1), axis=1).max() * (np.abs(keys).max() or 1)
    apart = (found.affine.numpy() @ keys - found.combination.numpy() @ keys) / (size or 1)
    assert np.linalg.norm(apart) < 2e-12


@settings(max_examples=40)
@given(keys_and_subset(), st.integers(0, 2**32 - 1))
def test_no_query_comes_below_the_least_error(drawn: tuple[Array, list[int]], seed: int) -> None:
    keys, subset = drawn
    found = average(keys, subset)
    if found.feasible is not False:
        return
    size = float(np.abs(keys).max() or 1)
    generator = torch.Generator().manual_seed(seed)
    for strength in (0.1, 1.0, 10.0, 100.0):
        query = strength / size * torch.randn(keys.shape[1], dtype=torch.float64, generator=generator)
        assert compute_error(found.problem.weights(query), found.target) >= found.error - 1e-9


@pytest.mark.parametrize("j", range(4))
def test_no_smaller_strength_along_the_direction_is_enough(j: int) -> None:
    found = select(EXAMPLE_KEYS, j)
    assert found.query is not None
    assert found.strength == pytest.approx(float(found.query.norm()))
    assert compute_error(found.problem.weights(0.9999 * found.query), found.target) > found.problem.tolerance
    assert found.error == pytest.approx(found.problem.tolerance)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_half_the_tolerance_needs_more_strength(seed: int) -> None:
    keys = np.random.default_rng(seed).normal(size=(5, 8))
    strengths = [select(keys, 0, tolerance=tolerance).strength for tolerance in (0.4, 0.2, 0.1, 0.01, 1e-9)]
    assert strengths == sorted(strengths)
    assert strengths[0] > 0


def test_equal_scores_are_equal_in_exact_arithmetic_up_to_rounding() -> None:
    found = average(EXAMPLE_KEYS, [0, 1])
    assert found.query is not None
    scores = exact_scores(np.array(EXAMPLE_KEYS), found.query.numpy())
    assert abs(float(scores[0] - scores[1])) < 1e-14
    assert min(scores[:2]) > max(scores[2:])


@pytest.mark.parametrize(("size", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 100.0), (1.0, 1e5)])
def test_weights_do_not_depend_on_the_unit_or_an_offset(size: float, offset: float) -> None:
    plain = average(EXAMPLE_KEYS, [0, 1])
    other = average(np.array(EXAMPLE_KEYS) * size + offset, [0, 1])
    assert plain.weights is not None
    torch.testing.assert_close(other.weights, plain.weights, atol=1e-9, rtol=0)
    assert other.strength == pytest.approx(plain.strength / size)


def test_one_key_alone_needs_no_query() -> None:
    found = select([[3.0, 4.0]], 0)
    assert found.query is not None
    assert found.query.tolist() == [0.0, 0.0]
    assert (found.error, found.strength, found.margin) == (0.0, 0.0, math.inf)


def test_the_least_error_of_one_key_is_that_of_an_even_spread() -> None:
    found = select([*EXAMPLE_KEYS, MIDDLE], 4)
    assert found.feasible is False
    assert found.error == pytest.approx(0.8)
    # q = 0 has it: the bound is reached.
    zero = torch.zeros(3, dtype=torch.float64)
    assert compute_error(found.problem.weights(zero), found.target) == pytest.approx(found.error)
    assert bound_error(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1) == pytest.approx(0.5)


def test_a_border_that_float64_cannot_see_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(focus, "NUDGES", ())
    found = select(EXAMPLE_KEYS, 0)
    assert found.feasible is None
    assert found.query is None
    assert math.isnan(found.error)
    assert "cannot tell" in str(found)
    assert found.figure()["title"]["text"] == "Perhaps no query selects k0"


def test_the_output_mixes_the_values() -> None:
    values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    found = select(EXAMPLE_KEYS, 2, values=values)
    assert found.query is not None
    assert found.weights is not None
    expected = attnlab.attend(found.query[None], found.problem.keys, torch.tensor(values, dtype=torch.float64))[0]
    torch.testing.assert_close(found.output, expected)
    torch.testing.assert_close(found.output, found.weights @ torch.tensor(values, dtype=torch.float64))


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
    assert compute_error(collapsed, found.target) > 0.49


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
