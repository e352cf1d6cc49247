"""Which keys a query can score above all others, with a direction or a proof that there is none.

A direction u gives the keys of a subset S equal scores, above every other key's by a margin, exactly if it separates
the affine hull of S from the convex hull of the other keys. Either

- such a u exists, and the largest margin over ‖u‖ = 1 is the distance between the two hulls; or
- the hulls intersect: Σ α_a k_a = Σ λ_i k_i with Σα = Σλ = 1 and λ ≥ 0. Then no query exists, since its scores obey the
  same equation: the score of S is a weighted mean of the others' scores. For S = {j}, k_j itself is in the hull.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

Array: TypeAlias = NDArray[np.float64]
Proposal: TypeAlias = tuple[Array, Array]
"""A direction [d] and weights of a convex combination [n]; both are verified."""

EPSILON = float(np.finfo(np.float64).eps)
NEGLIGIBLE = 1e-12
"""The distance between the hulls, relative to the largest key, that counts as 0 if no direction is found."""


@dataclass(frozen=True, eq=False)
class Separation:
    """The best direction and the best proof found. Lengths are in units of the keys.

    direction: of norm 1, with equal scores for the subset; zeros if none was found. gaps: how much the lowest score of
    the subset exceeds that of each other key. convex, affine: λ and α over all keys. residual: ‖Σ α k − Σ λ k‖.
    rounding: the rounding error of a gap in float64. size: the norm of the largest key.
    """

    direction: Array
    gaps: Array
    convex: Array
    affine: Array
    residual: float
    rounding: float
    size: float

    @property
    def margin(self) -> float:
        """The smallest gap."""
        return float(self.gaps.min())

    @property
    def is_possible(self) -> bool | None:
        """Whether a query exists; None if float64 cannot tell."""
        if self.margin > self.rounding:
            return True
        return False if self.residual <= NEGLIGIBLE * self.size else None


def separate(keys: Array, subset: Sequence[int]) -> Separation:
    """Separate some keys from the others, of which there must be at least one."""
    # Scaled by a power of two, which is exact, so that the size of the keys does not matter.
    unit = 2.0 ** (math.frexp(float(np.abs(keys).max()))[1] - 1)
    scaled = keys / unit
    is_inside = np.isin(np.arange(len(keys)), subset)
    inside, outside = scaled[is_inside], scaled[~is_inside]
    size = float(np.linalg.norm(scaled, axis=1).max())
    rounding = (keys.shape[1] + 4) * EPSILON * size
    free = _find_complement(inside[1:] - inside[0], rounding)
    proposals = list(_propose((inside[0] - outside) @ free))
    directions = [free @ direction for direction, _ in proposals]
    direction = max(directions, key=lambda u: float(_measure_gaps(u, inside, outside).min()))
    proofs = [_complete_proof(weights, inside, outside) for _, weights in proposals]
    convex, affine = np.zeros((2, len(keys)))
    convex[~is_inside], affine[is_inside], residual = min(proofs, key=lambda proof: proof[2])
    gaps = _measure_gaps(direction, inside, outside) * unit
    return Separation(direction, gaps, convex, affine, residual * unit, rounding * unit, size * unit)


def _find_complement(tangents: Array, rounding: float) -> Array:
    """Return an orthonormal basis [d r] of the orthogonal complement of the tangents [t d]."""
    if len(tangents) == 0:
        return np.eye(tangents.shape[1])
    _, sizes, rows = np.linalg.svd(tangents)
    return np.ascontiguousarray(rows[int((sizes > rounding).sum()) :].T)


def _propose(differences: Array) -> Iterator[Proposal]:
    """Propose directions u with every difference·u large, and convex combinations of the differences near 0."""
    longest = float(np.linalg.norm(differences, axis=1).max(initial=0.0)) if differences.shape[1] else 0.0
    if longest == 0:
        yield np.zeros(differences.shape[1]), np.eye(len(differences))[0]
        return
    # The linear program always ends, with a tolerance of 1e-7; least squares are exact, but may run out of iterations.
    yield solve_program(differences / longest)
    yield from solve_distance(differences / longest)


def solve_program(differences: Array) -> Proposal:
    """Maximise m such that u·difference ≥ m with all coordinates of u in [−1, 1]; the dual is the combination."""
    num_rows, dim = differences.shape
    objective, rows = np.append(np.zeros(dim), -1.0), np.hstack([-differences, np.ones((num_rows, 1))])
    bounds = [(-1.0, 1.0)] * dim + [(None, None)]
    solution = linprog(objective, A_ub=rows, b_ub=np.zeros(num_rows), bounds=bounds, method="highs")
    if solution.x is None:
        return np.zeros(dim), np.full(num_rows, 1 / num_rows)
    return unit_vector(solution.x[:-1]), _clip_to_simplex(-solution.ineqlin.marginals)


def solve_distance(differences: Array) -> Iterator[Proposal]:
    """Find the point of the differences' convex hull nearest to 0: its direction has the largest Euclidean margin.

    Its weights are, up to a factor, the non-negative least squares solution over the differences with an additional
    coordinate 1: for a fixed mixture, the best factor gives a smaller objective if the point is nearer to 0.
    """
    num_rows = len(differences)
    target = np.append(np.zeros(differences.shape[1]), 1.0)
    try:
        solution, _ = nnls(np.vstack([differences.T, np.ones(num_rows)]), target, maxiter=30 * num_rows)
    except RuntimeError:
        return
    weights = _clip_to_simplex(solution)
    yield unit_vector(weights @ differences), weights
    # Near 0 rounding destroys the direction of the point, but all its corners still have the same margin.
    corners = differences[weights > 0]
    solved, *_ = np.linalg.lstsq(corners, np.ones(len(corners)), rcond=EPSILON)
    yield unit_vector(np.asarray(solved, dtype=np.float64)), weights


def _complete_proof(convex: Array, inside: Array, outside: Array) -> tuple[Array, Array, float]:
    """Return a convex combination of the outer keys, the nearest affine one of the inner keys, and their distance."""
    point = convex @ outside - inside[0]
    rest, *_ = np.linalg.lstsq((inside[1:] - inside[0]).T, point, rcond=None) if len(inside) > 1 else (np.zeros(0),)
    affine = np.append(1 - rest.sum(), rest)
    return convex, affine, float(np.linalg.norm(rest @ (inside[1:] - inside[0]) - point))


def _measure_gaps(direction: Array, inside: Array, outside: Array) -> Array:
    centre = inside[0]  # subtracted first, so that common offsets cancel
    lowest = float(((inside - centre) @ direction).min())
    return np.asarray(lowest - (outside - centre) @ direction, dtype=np.float64)


def unit_vector(vector: Array) -> Array:
    """Return a vector scaled to norm 1; zero stays zero."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return np.zeros_like(vector)
    vector = vector / largest
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def _clip_to_simplex(weights: Array) -> Array:
    clipped = np.maximum(weights, 0.0)
    total = float(clipped.sum())
    return clipped / total if total > 0 else np.full(len(weights), 1 / len(weights))
