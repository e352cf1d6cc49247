"""Which keys a query can score above all others: a question of geometry, answered with a direction or a proof.

A direction u gives the keys of a subset S one score, above every other key's by a margin, exactly where it parts the
affine hull of S from the convex hull of the other keys. One of two things is true:

- there is such a u, and the largest margin over ‖u‖ = 1 is the distance between the two hulls;
- the hulls meet: Σ α_a k_a = Σ λ_i k_i with Σα = Σλ = 1 and λ ≥ 0. Then no query exists, since its scores obey the
  same equation: the mean of the others' scores, weighed by λ, is what S scores. For S = {j}, k_j itself is in the hull.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

Array: TypeAlias = NDArray[np.float64]
Proposal: TypeAlias = tuple[Array, Array]
"""A direction [d] and weights of a convex combination [n]; what they are worth is measured, not believed."""

EPSILON = float(np.finfo(np.float64).eps)
NEGLIGIBLE = 1e-12
"""The distance between the hulls, relative to the largest key, that counts as none once no direction is found."""


@dataclass(frozen=True, eq=False)
class Separation:
    """The best direction and the best proof found. Lengths are in units of the keys."""

    direction: Array
    """Of length 1, with one score for the whole subset; zeros where nothing was found."""
    gaps: Array
    """By how much the subset's lowest score along the direction exceeds that of each other key."""
    convex: Array
    """λ over all keys, 0 on the subset."""
    affine: Array
    """α over all keys, 0 outside the subset."""
    residual: float
    """‖Σ α k − Σ λ k‖."""
    rounding: float
    """What a gap may owe to the rounding of float64."""
    size: float
    """The largest key."""

    @property
    def margin(self) -> float:
        """The smallest gap."""
        return float(self.gaps.min())

    @property
    def is_possible(self) -> bool | None:
        """Whether a query exists: True and False are measured, None is that float64 cannot tell."""
        if self.margin > self.rounding:
            return True
        return False if self.residual <= NEGLIGIBLE * self.size else None


def separate(keys: Array, subset: Sequence[int]) -> Separation:
    """Part some keys from the others, of which there must be at least one."""
    # A power of two: dividing by it loses nothing, and keys of any size are solved alike.
    unit = 2.0 ** (math.frexp(float(np.abs(keys).max()))[1] - 1)
    scaled = keys / unit
    is_inside = np.isin(np.arange(len(keys)), subset)
    inside, outside = scaled[is_inside], scaled[~is_inside]
    size = float(np.linalg.norm(scaled, axis=1).max())
    rounding = (keys.shape[1] + 4) * EPSILON * size
    free = complement(inside[1:] - inside[0], rounding)
    proposals = list(propose((inside[0] - outside) @ free))
    directions = [free @ direction for direction, _ in proposals]
    direction = max(directions, key=lambda u: float(gaps_along(u, inside, outside).min()))
    proofs = [proof_of(weights, inside, outside) for _, weights in proposals]
    convex, affine, residual = min(proofs, key=lambda proof: proof[2])
    return Separation(
        direction=direction,
        gaps=gaps_along(direction, inside, outside) * unit,
        convex=spread(convex, ~is_inside),
        affine=spread(affine, is_inside),
        residual=residual * unit,
        rounding=rounding * unit,
        size=size * unit,
    )


def complement(tangents: Array, rounding: float) -> Array:
    """Return an orthonormal basis [d r] of what is orthogonal to all tangents [t d]."""
    if len(tangents) == 0:
        return np.eye(tangents.shape[1])
    _, sizes, rows = np.linalg.svd(tangents)
    return np.ascontiguousarray(rows[int((sizes > rounding).sum()) :].T)


def propose(differences: Array) -> Iterator[Proposal]:
    """Propose directions u with every difference·u large, and convex combinations of the differences near 0.

    Two solvers, because each fails where the other does not: the linear program always ends, to a tolerance of 1e-7;
    least squares are exact to rounding, but may run out of iterations.
    """
    longest = float(np.linalg.norm(differences, axis=1).max(initial=0.0)) if differences.shape[1] else 0.0
    if longest == 0:
        yield np.zeros(differences.shape[1]), np.eye(len(differences))[0]
        return
    units = differences / longest
    yield solve_program(units)
    yield from solve_distance(units)


def solve_program(differences: Array) -> Proposal:
    """Maximise the margin m of u·difference ≥ m with every coordinate of u in [−1, 1]; its dual is the combination."""
    num_rows, dim = differences.shape
    found = linprog(
        c=np.append(np.zeros(dim), -1.0),
        A_ub=np.hstack([-differences, np.ones((num_rows, 1))]),
        b_ub=np.zeros(num_rows),
        bounds=[(-1.0, 1.0)] * dim + [(None, None)],
        method="highs",
    )
    if found.x is None:
        return np.zeros(dim), np.full(num_rows, 1 / num_rows)
    return unit_vector(found.x[:-1]), simplex_point(-found.ineqlin.marginals)


def solve_distance(differences: Array) -> Iterator[Proposal]:
    """Find the point of the differences' convex hull nearest to 0: its direction has the largest Euclidean margin.

    Non-negative least squares over the differences with one more coordinate, 1: its solution is that point's weights
    up to a factor, for at a fixed mixture the best factor only shrinks the objective as the point comes nearer.
    """
    num_rows = len(differences)
    target = np.append(np.zeros(differences.shape[1]), 1.0)
    try:
        solution, _ = nnls(np.vstack([differences.T, np.ones(num_rows)]), target, maxiter=30 * num_rows)
    except RuntimeError:
        return
    weights = simplex_point(solution)
    yield unit_vector(weights @ differences), weights
    # Near 0 the point's direction is lost to rounding; that all its corners have one margin is not.
    corners = differences[weights > 0]
    solved, *_ = np.linalg.lstsq(corners, np.ones(len(corners)), rcond=EPSILON)
    yield unit_vector(np.asarray(solved, dtype=np.float64)), weights


def proof_of(convex: Array, inside: Array, outside: Array) -> tuple[Array, Array, float]:
    """Complete a convex combination of the outer keys with the affine one of the inner keys that comes nearest."""
    point = convex @ outside - inside[0]
    rest, *_ = np.linalg.lstsq((inside[1:] - inside[0]).T, point, rcond=None) if len(inside) > 1 else (np.zeros(0),)
    affine = np.append(1 - rest.sum(), rest)
    return convex, affine, float(np.linalg.norm(rest @ (inside[1:] - inside[0]) - point))


def gaps_along(direction: Array, inside: Array, outside: Array) -> Array:
    """Return how far the lowest inner score lies above each outer one; differences first, so that offsets cancel."""
    centre = inside[0]
    lowest = float(((inside - centre) @ direction).min())
    return np.asarray(lowest - (outside - centre) @ direction, dtype=np.float64)


def unit_vector(vector: Array) -> Array:
    """Return a vector at length 1; zero stays zero."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return np.zeros_like(vector)
    vector = vector / largest
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def simplex_point(weights: Array) -> Array:
    """Return weights without negative ones, with sum 1."""
    clipped = np.maximum(weights, 0.0)
    total = float(clipped.sum())
    return clipped / total if total > 0 else np.full(len(weights), 1 / len(weights))


def spread(part: Array, where: NDArray[np.bool_]) -> Array:
    """Put numbers at their places among all keys, and 0 elsewhere."""
    whole = np.zeros(len(where))
    whole[where] = part
    return whole
