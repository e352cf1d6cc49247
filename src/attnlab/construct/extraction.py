"""Extraction of one value from the mean of two. With A an orthonormal basis of the subspace of v_a, M = 2AAᵀ gives

    M(v_a + v_b)/2 = v_a + AAᵀv_b,

which is v_a if the subspaces are orthogonal. Otherwise the error is the projection of v_b on A's subspace: up to
‖AᵀB‖ = cos θ for ‖v_b‖ = 1, with θ the smallest angle between the two."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.errors import RequestError, ShapeError
from attnlab.kernels.rounding import show_residual

from . import pictures
from .construction import Construction
from .problem import ConstructionProblem, Numbers, read_numbers, read_problem, read_vector
from .words import short

ORTHONORMAL = 1e-6
"""How far AᵀA may be from 1 for columns that count as orthonormal: the rounding of float32."""
EXACT = 1e-8
"""The error up to which an oblique projection counts as recovering a value."""


@dataclass(frozen=True, eq=False, repr=False)
class Extraction(Construction):
    """The matrix that recovers v_a from (v_a + v_b)/2, applied to two vectors."""

    problem: ConstructionProblem
    """Two keys with the values v_a and v_b."""
    basis: Tensor
    """An orthonormal basis of A's subspace [d r]."""
    other: Tensor
    """An orthonormal basis of B's subspace [d s]."""
    is_orthonormal: bool
    """Whether basis_a was given orthonormal; only then is 2·basis_a·basis_aᵀ the matrix."""
    matrix: Tensor
    """M = 2AAᵀ."""
    angles: Tensor
    """The principal angles between the subspaces in degrees, the smallest first; all 90 if orthogonal."""
    query: Tensor
    """0, which averages the two values."""
    weights: Tensor
    mixture: Tensor
    """The output of attention: (v_a + v_b)/2."""
    output: Tensor
    """M times the mixture."""
    error: float
    """‖output − v_a‖."""
    largest_error: float
    """The largest error of any v_b of norm 1: the cosine of the smallest angle."""
    oblique: Tensor | None
    """Twice the projection on A along B, which is exact at any angle; None if the subspaces share a direction."""

    @property
    def value_a(self) -> Tensor:
        """The value to recover."""
        return self._values[0]

    @property
    def value_b(self) -> Tensor:
        """The value that it was mixed with; by default the one with the largest error."""
        return self._values[1]

    @property
    def oblique_error(self) -> float:
        """‖oblique · mixture − v_a‖; NaN without an oblique projection."""
        return float("nan") if self.oblique is None else float((self.oblique @ self.mixture - self.value_a).norm())

    @property
    def _values(self) -> Tensor:
        assert self.problem.values is not None
        return self.problem.values

    @property
    def feasible(self) -> bool:
        """Whether a matrix recovers v_a: twice the projection on A, or along B."""
        return self.oblique is not None

    def figure(self) -> Spec:
        """Draw v_a, the mixture and the output, and the largest error against the angle."""
        return pictures.draw_extraction(self)

    def __str__(self) -> str:
        if self.largest_error <= EXACT:
            return (
                "Twice the projection on A recovers v_a from (v_a + v_b)/2, since the subspaces are orthogonal: "
                f"error {show_residual(self.error, float(self._values.norm()), len(self.basis))}."
            )
        shared = "The subspaces share a direction, so no matrix recovers v_a."
        remedy = shared if self.oblique is None else "Projecting along B instead is exact."
        return (
            f"Twice the projection on A misses v_a by {short(self.error)}: the subspaces meet at an angle of "
            f"{short(float(self.angles[0]))}°, and a v_b of norm 1 leaves up to {short(self.largest_error)}. {remedy}"
        )


def extract(
    basis_a: Numbers, basis_b: Numbers | None = None, *, value_a: Numbers | None = None, value_b: Numbers | None = None
) -> Extraction:
    """Find the matrix that recovers v_a from (v_a + v_b)/2, and its error.

    basis_a, basis_b [d r]: their columns span the subspaces of v_a and v_b, and are orthonormalised if necessary.
    Without basis_b, v_b is in the orthogonal complement of A.
    For the mean of n > 2 values give the columns of all others side by side as basis_b; n/2 times the matrix applies.
    value_a, value_b [d]: the values to apply it to; by default unit vectors, with v_b of the largest error.
    """
    a, is_orthonormal = _read_basis("basis_a", basis_a)
    if basis_b is None and value_b is not None:
        basis_b = read_vector("value_b", value_b, len(a))
    b = torch.linalg.svd(a)[0][:, a.shape[1] :] if basis_b is None else _read_basis("basis_b", basis_b)[0]
    if len(b) != len(a):
        raise ShapeError(
            f"basis_a and basis_b must have rows for the same coordinates; they have {len(a)} and {len(b)}"
        )
    left, cosines, right = torch.linalg.svd(a.T @ b)
    largest = float(cosines[0].clamp(max=1.0)) if len(cosines) else 0.0
    nearest = a @ left[:, 0]
    sign = -1.0 if float(nearest[nearest.abs().argmax()]) < 0 else 1.0
    # The unit vector of B nearest to A has the largest error; 0 if B is empty.
    worst = b @ right[0] if b.shape[1] else torch.zeros(len(b), dtype=torch.float64)
    v_a = sign * nearest if value_a is None else _read_member("value_a", value_a, a)
    v_b = sign * worst if value_b is None else _read_member("value_b", value_b, b)
    problem = read_problem(torch.eye(2), torch.stack([v_a, v_b]))
    query = torch.zeros(2, dtype=torch.float64)
    weights, mixture, matrix = problem.weights(query), problem.output(query), 2 * a @ a.T
    angles, output = torch.rad2deg(torch.arccos(cosines.clamp(max=1.0))), matrix @ mixture
    return Extraction(
        problem, a, b, is_orthonormal, matrix, angles, query, weights, mixture, output,
        error=float((output - v_a).norm()), largest_error=largest, oblique=_project_along(a, b),
    )  # fmt: skip


def _project_along(a: Tensor, b: Tensor) -> Tensor | None:
    """Return twice the projection on A along B, or None if they share a direction."""
    both = torch.cat([a, b], dim=1)
    matrix = 2 * a @ torch.linalg.pinv(both)[: a.shape[1]]
    wanted = torch.cat([2 * a, torch.zeros_like(b)], dim=1)
    return matrix if float((matrix @ both - wanted).abs().max()) <= EXACT else None


def _read_basis(name: str, given: Numbers) -> tuple[Tensor, bool]:
    """Return an orthonormal basis of the span of the columns, and whether they are one themselves."""
    columns = read_numbers(name, given)
    columns = columns[:, None] if columns.dim() == 1 else columns
    if columns.dim() != 2 or 0 in columns.shape:
        raise ShapeError(
            f"{name} must be a matrix with a basis as its columns, [d, r]; the shape is {tuple(columns.shape)}"
        )
    dim, count = columns.shape
    if count > dim:
        raise ShapeError(
            f"{name} has {count} columns of {dim} coordinates, more than a basis can have; "
            "the columns are the basis: transpose it if the rows are"
        )
    rotated, sizes, _ = torch.linalg.svd(columns, full_matrices=False)
    rank = int((sizes > sizes[0] * dim * np.finfo(np.float64).eps).sum())
    if rank == 0:
        raise RequestError(f"{name} spans nothing: all its columns are 0")
    is_orthonormal = bool((columns.T @ columns - torch.eye(count, dtype=torch.float64)).abs().max() <= ORTHONORMAL)
    return rotated[:, :rank], is_orthonormal


def _read_member(name: str, given: Numbers, basis: Tensor) -> Tensor:
    vector = read_vector(name, given, len(basis))
    outside = float((vector - basis @ (basis.T @ vector)).norm())
    if outside > ORTHONORMAL * float(vector.norm()):
        raise RequestError(f"{name} must lie in the span of its basis; it is {short(outside)} away from it")
    return vector
