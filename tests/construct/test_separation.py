"""Parting some keys from the others: a direction of the largest margin, or a point that both sides share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.construct import separation
from attnlab.construct.separation import Array, separate, solve_distance, solve_program
from tests.construct.strategies import exact_scores, keys_and_subset


@settings(max_examples=150)
@given(keys_and_subset())
def test_every_claim_is_true_in_exact_arithmetic(drawn: tuple[Array, list[int]]) -> None:
    keys, subset = drawn
    others = [i for i in range(len(keys)) if i not in subset]
    if not others:
        return
    found = separate(keys, subset)
    if found.is_possible:
        scores = exact_scores(keys, found.direction)
        assert min(scores[i] for i in subset) > max(scores[i] for i in others)
        return
    assert found.is_possible is False
    assert (found.convex >= 0).all()
    assert found.convex[subset].tolist() == [0.0] * len(subset)
    assert found.affine[others].tolist() == [0.0] * len(others)
    assert found.convex.sum() == pytest.approx(1)
    assert found.affine.sum() == pytest.approx(1)
    size = np.linalg.norm(keys / (np.abs(keys).max() or 1), axis=1).max() * (np.abs(keys).max() or 1)
    apart = (found.affine @ keys - found.convex @ keys) / (size or 1)
    assert np.linalg.norm(apart) <= 2 * separation.NEGLIGIBLE


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 5))
def test_no_other_direction_has_a_larger_margin(seed: int, num_keys: int, dim: int) -> None:
    generator = np.random.default_rng(seed)
    keys = generator.normal(size=(num_keys, dim))
    found = separate(keys, [0])
    for direction in generator.normal(size=(200, dim)):
        unit = direction / np.linalg.norm(direction)
        assert ((keys[0] - keys[1:]) @ unit).min() <= max(found.margin, 0) + 1e-9


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8), st.integers(2, 5))
def test_the_margin_is_the_distance_between_the_hulls(seed: int, num_keys: int, dim: int) -> None:
    keys = np.random.default_rng(seed).normal(size=(num_keys, dim))
    found = separate(keys, [0, 1])
    assert max(found.margin, 0) == pytest.approx(found.residual, abs=1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e-6, 1.0, 1e6, 1e150])
@pytest.mark.parametrize("j", [0, 3])
def test_the_answer_does_not_depend_on_the_unit(size: float, j: int) -> None:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.1, 0.1]])
    plain, scaled = separate(keys, [j]), separate(keys * size, [j])
    assert plain.is_possible is scaled.is_possible is (j == 0)
    assert scaled.margin == pytest.approx(plain.margin * size, abs=1e-15 * size)
    if j == 0:
        np.testing.assert_allclose(scaled.direction, plain.direction, atol=1e-12)


def test_an_offset_of_all_keys_changes_nothing() -> None:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.25, 0.25]])
    for j in range(4):
        near, far = separate(keys, [j]), separate(keys + 2.0**20, [j])
        assert near.is_possible is far.is_possible
        assert far.margin == pytest.approx(near.margin, abs=1e-8)


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-11])
def test_a_key_just_outside_the_hull_is_told_from_one_inside(distance: float) -> None:
    square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    outside = separate(np.array([[1 + distance, 0.3], *square]), [0])
    assert outside.is_possible
    assert outside.margin == pytest.approx(distance, rel=1e-3)
    assert separate(np.array([[1 - distance, 0.3], *square]), [0]).is_possible is False


def test_what_float64_cannot_tell_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separation, "NEGLIGIBLE", 0.0)
    keys = np.array([[0.1 + 0.2, 0.7], [0.3, 0.1], [0.3, 0.9], [0.1, 0.3]])
    found = separate(keys, [0])
    assert found.is_possible is None or found.residual == 0


def test_either_solver_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.1, 0.1]])

    def exhausted(*_: object, **__: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(separation, "nnls", exhausted)
    assert separate(keys, [0]).is_possible
    assert separate(keys, [3]).is_possible is False


def test_the_program_and_its_dual_agree() -> None:
    differences = np.random.default_rng(0).normal(size=(6, 4)) + 1
    direction, weights = solve_program(differences)
    box = direction / np.abs(direction).max()
    assert (differences @ box).min() == pytest.approx(np.abs(weights @ differences).sum(), abs=1e-6)
    (nearest, corners), *_ = solve_distance(differences)
    assert (differences @ nearest).min() == pytest.approx(np.linalg.norm(corners @ differences))
    assert (differences @ nearest).min() >= (differences @ direction).min() - 1e-12
