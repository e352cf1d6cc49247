"""`extract`: v_a out of (v_a + v_b)/2, exactly where the subspaces are orthogonal, and how far off where not."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.construct import extract
from attnlab.errors import AttnlabError, RequestError, ShapeError


def orthonormal(dim: int, count: int, seed: int) -> torch.Tensor:
    draw = torch.randn(dim, count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    columns: torch.Tensor = torch.linalg.qr(draw).Q
    return columns


@settings(max_examples=40)
@given(st.integers(2, 12), st.integers(0, 2**31), st.data())
def test_orthogonal_subspaces_are_taken_apart_exactly(dim: int, seed: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, dim - 1))
    whole = orthonormal(dim, dim, seed)
    a, b = whole[:, :rank], whole[:, rank:]
    for found in (extract(a), extract(a, b)):
        torch.testing.assert_close(found.matrix, 2 * a @ a.T)
        assert found.error < 1e-12
        assert found.largest_error < 1e-12
        assert found.angles.tolist() == pytest.approx([90.0] * min(rank, dim - rank))
    v_a, v_b = a @ torch.ones(rank, dtype=torch.float64), b @ torch.ones(dim - rank, dtype=torch.float64)
    found = extract(a, b, value_a=v_a, value_b=v_b)
    torch.testing.assert_close(found.mixture, (v_a + v_b) / 2)
    torch.testing.assert_close(found.output, v_a)
    assert found.weights.tolist() == [0.5, 0.5]


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 3))
def test_the_error_is_the_shadow_of_the_other_value(seed: int, rank_a: int, rank_b: int) -> None:
    a, b = orthonormal(7, rank_a, seed), orthonormal(7, rank_b, seed + 1)
    found = extract(a, b)
    assert found.largest_error == pytest.approx(float(torch.linalg.matrix_norm(a.T @ b, 2)))
    assert found.largest_error == pytest.approx(math.cos(math.radians(float(found.angles[0]))))
    # The value it is tried on is the worst there is, and no other leaves more.
    assert found.error == pytest.approx(found.largest_error)
    for v_b in torch.randn(50, rank_b, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) @ b.T:
        other = extract(a, b, value_b=v_b / v_b.norm())
        assert other.error <= found.largest_error + 1e-12
    assert found.oblique is not None
    assert found.oblique_error < 1e-7


def test_columns_are_made_orthonormal() -> None:
    found = extract([[2.0, 2.0], [0.0, 1.0], [0.0, 0.0]])
    assert not found.is_orthonormal
    torch.testing.assert_close(found.matrix, torch.diag(torch.tensor([2.0, 2.0, 0.0], dtype=torch.float64)))
    assert found.error < 1e-15
    assert extract(np.eye(3)[:, :2]).is_orthonormal
    assert extract([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]]).basis.shape == (3, 1)


def test_a_vector_spans_a_line() -> None:
    found = extract([3.0, 4.0], [1.0, 0.0])
    assert found.largest_error == pytest.approx(0.6)
    assert "misses v_a by 0.6" in str(found)
    assert "along B instead is exact" in str(found)


def test_a_shared_direction_leaves_no_matrix() -> None:
    found = extract(np.eye(3)[:, :2], np.eye(3)[:, 1:])
    assert found.largest_error == pytest.approx(1)
    assert found.oblique is None
    assert math.isnan(found.oblique_error)
    assert "no matrix recovers v_a" in str(found)


def test_a_value_alone_says_what_it_is_mixed_with() -> None:
    found = extract([[1.0], [0.0]], value_a=[5.0, 0.0], value_b=[1.0, 1.0])
    assert found.output.tolist() == pytest.approx([6.0, 0.0])
    assert found.error == pytest.approx(1)
    assert found.largest_error == pytest.approx(math.sqrt(0.5))


def test_nothing_is_orthogonal_to_the_whole_space() -> None:
    found = extract(np.eye(2))
    assert not found.value_b.any()
    assert found.error == 0


@pytest.mark.parametrize(
    ("basis", "other", "error", "words"),
    [
        ([[1.0, 0.0, 0.0]], None, ShapeError, "transpose it if the rows are"),
        ([[[1.0]]], None, ShapeError, "a basis as its columns"),
        ([], None, ShapeError, "a basis as its columns"),
        ([[0.0], [0.0]], None, RequestError, "spans nothing"),
        ([[1.0], [0.0]], [[1.0], [0.0], [0.0]], ShapeError, "they have 2 and 3"),
    ],
)
def test_what_is_no_basis_is_refused(
    basis: list[object], other: list[object] | None, error: type[AttnlabError], words: str
) -> None:
    with pytest.raises(error, match=words):
        extract(basis, other)


def test_a_value_outside_its_subspace_is_refused() -> None:
    with pytest.raises(RequestError, match="value_a must lie in the span of its basis; it is 1 away"):
        extract([[1.0], [0.0]], value_a=[0.0, 1.0])
    with pytest.raises(RequestError, match="value_b must lie"):
        extract([[1.0], [0.0]], [[0.0], [1.0]], value_b=[1.0, 0.0])


@pytest.mark.parametrize("num", [3, 5])
def test_one_value_of_several_is_recovered_by_a_multiple_of_the_matrix(num: int) -> None:
    generator = torch.Generator().manual_seed(num)
    bases = [torch.randn(16, 3, generator=generator, dtype=torch.float64) for _ in range(num)]
    values = [basis @ torch.randn(3, generator=generator, dtype=torch.float64) for basis in bases]
    found = extract(bases[0], torch.cat(bases[1:], dim=1))
    mean = torch.stack(values).mean(0)
    assert found.oblique is not None
    torch.testing.assert_close(num / 2 * found.oblique @ mean, values[0])
    left = found.basis @ found.basis.T @ sum(values[1:], torch.zeros(16, dtype=torch.float64))
    torch.testing.assert_close(num / 2 * found.matrix @ mean, values[0] + left)


@pytest.mark.parametrize("seed", range(20))
def test_an_error_of_rounding_is_printed_as_0(seed: int) -> None:
    columns = orthonormal(12, 12, seed)
    found = extract(columns[:, :3], columns[:, 3:9])
    assert str(found).endswith(("error 0 (to rounding).", "error 0."))
