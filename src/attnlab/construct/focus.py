"""A query that spreads its weight evenly over a subset of the keys and gives the others none, or the proof that none
exists. A subset of one key is selection, a larger one is averaging."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import logsumexp
from torch import Tensor

from attnlab.charts import Spec
from attnlab.kernels.rounding import show_residual

from . import pictures
from .construction import Construction
from .problem import TOLERANCE, ConstructionProblem, Numbers, read_index, read_problem, read_subset
from .separation import Array, separate
from .words import equation, name_key, name_keys, short

WITHIN = 1 - 1e-9
"""The part of the tolerance that is aimed at, so that rounding does not raise the error above it."""
NUDGES = (0.0, *(10.0**power for power in range(-15, 0)))
"""Relative increases of the strength that are tried until the kernel's weights reach the tolerance too."""


@dataclass(frozen=True, eq=False, repr=False)
class Focus(Construction):
    """A query for a subset of the keys, or the proof that there is none (`feasible` False, `query` None)."""

    problem: ConstructionProblem
    subset: tuple[int, ...]
    feasible: bool | None
    """Whether a query exists; None if float64 cannot tell."""
    query: Tensor | None
    """strength · direction."""
    weights: Tensor | None
    """The kernel's weights of the query."""
    output: Tensor | None
    """The kernel's output of the query."""
    error: float
    """The share of misplaced weight, ½ Σ|w − target|. Without a query: a lower bound for every query."""
    direction: Tensor
    """The unit vector of the largest margin."""
    margin: float
    """How much q·k of the subset exceeds that of every other key at ‖q‖ = 1: the distance between the subset's affine
    hull and the convex hull of the others. Infinite if there are no others."""
    strength: float
    """The smallest ‖q‖ along the direction that reaches the tolerance; infinite without a query."""
    combination: Tensor | None
    """Without a query: non-negative weights of the other keys, with sum 1, …"""
    affine: Tensor | None
    """… and weights of the subset's keys, with sum 1, that give the same point."""
    residual: float
    """The distance of the two points, in units of the keys; NaN with a query."""

    @property
    def target(self) -> Tensor:
        """The weights that the query should have: equal on the subset, 0 elsewhere."""
        return make_target(self.problem, self.subset)

    @property
    def naive_query(self) -> Tensor:
        """The obvious first attempt: the key itself, or the mean of the keys."""
        return self.problem.keys[list(self.subset)].mean(dim=0)

    @property
    def naive(self) -> Tensor:
        """The weights of the naive query."""
        return self.problem.weights(self.naive_query)

    def figure(self) -> Spec:
        """Draw the weights and how they grow with the strength; without a query, the combination that excludes it."""
        return pictures.draw_focus(self) if self.query is not None else pictures.draw_proof(self)

    def __str__(self) -> str:
        names = name_keys(self.subset)
        verb = "selects" if len(self.subset) == 1 else "averages"
        if self.feasible is None:
            return (
                f"float64 cannot tell whether a query {verb} {names}: a margin, if there is one, is below the rounding "
                f"of the scores; the best found is {self._show_distance(self.margin)}, and the nearest combination is "
                f"{self._show_distance(self.residual)} away."
            )
        if self.feasible:
            if self.strength == 0:
                return f"q = 0 {verb} {names}: every key has the same weight, error {show_residual(self.error)}."
            return (
                f"A query of strength {short(self.strength)} {verb} {names} with error {show_residual(self.error)}; "
                f"at strength 1 its margin is {short(self.margin)}, the largest there is."
            )
        return self._explain_refusal(names, verb)

    def _show_distance(self, distance: float) -> str:
        size = float(self.problem.keys.norm(dim=-1).max())
        return show_residual(distance, size, self.problem.keys.shape[1])

    def _explain_refusal(self, names: str, verb: str) -> str:
        assert self.combination is not None
        assert self.affine is not None
        sides = f"{equation(self.affine)} = {equation(self.combination)}"
        if len(self.subset) == 1:
            return (
                f"No query {verb} {names}: {sides} lies in the convex hull of the other keys, so one of them always "
                f"scores at least as much. {name_key(self.subset[0])} never gets more than {short(1 - self.error)}."
            )
        may_be_uneven = self.error <= self.problem.tolerance
        left = f" An uneven one of error {show_residual(self.error)} or more is not excluded." if may_be_uneven else ""
        return (
            f"No query {verb} {names} above all others: {sides}, so a query that scores {names} alike scores another "
            f"key at least as much. Every query has an error of {show_residual(self.error)} or more.{left}"
        )


def select(
    keys: Numbers, j: SupportsIndex, *, values: Numbers | None = None, scale: float | None = None,
    tolerance: float = TOLERANCE,
) -> Focus:  # fmt: skip
    """Find a query that gives key j all of the weight up to the tolerance, or prove that there is none.

    keys [n d]: a tensor, an array or lists. values [n e]: what is mixed; by default the output is the weights.
    scale: factor of q·k; 1/√d by default.
    The query points in the direction of the largest Euclidean margin; its strength is the smallest that reaches the
    tolerance.
    """
    problem = read_problem(keys, values, scale, tolerance)
    return find_focus(problem, (read_index(j, problem.num_keys),))


def average(
    keys: Numbers, subset: Sequence[int] | None = None, *, values: Numbers | None = None, scale: float | None = None,
    tolerance: float = TOLERANCE,
) -> Focus:  # fmt: skip
    """Find a query that gives equal weights to a subset of the keys and none to others, or prove that there is none.

    Without a subset all keys are averaged, and q = 0 does it exactly. The obvious query, the mean of the keys, scores
    them equally only if their norms are equal; a stronger one selects a single key. `naive` has its weights.
    keys, values, scale and the margin are those of `select`.
    """
    problem = read_problem(keys, values, scale, tolerance)
    return find_focus(problem, read_subset(subset, problem.num_keys))


def find_focus(problem: ConstructionProblem, subset: tuple[int, ...]) -> Focus:
    """Find the query of the largest margin and smallest strength for a subset, or prove that there is none."""
    if len(subset) == problem.num_keys:
        return _make_focus(problem, subset, torch.zeros(problem.keys.shape[1], dtype=torch.float64), math.inf, 0.0)
    separation = separate(problem.keys.numpy(), subset)
    direction = torch.from_numpy(separation.direction)
    if separation.is_possible:
        start = find_least_strength(separation.gaps, len(subset), problem)
        for nudge in NUDGES:
            reached = _make_focus(problem, subset, direction, separation.margin, start * (1 + nudge))
            if reached.error <= problem.tolerance:
                return reached
    convex, affine, is_proven = separation.convex, separation.affine, separation.is_possible is False
    return Focus(
        problem, subset, False if is_proven else None, None, None, None,
        bound_error(convex, affine, len(subset)) if is_proven else math.nan, direction, separation.margin, math.inf,
        torch.from_numpy(convex), torch.from_numpy(affine), separation.residual,
    )  # fmt: skip


def _make_focus(
    problem: ConstructionProblem, subset: tuple[int, ...], direction: Tensor, margin: float, strength: float
) -> Focus:
    query = strength * direction
    weights = problem.weights(query)
    error = compute_error(weights, make_target(problem, subset))
    return Focus(
        problem, subset, True, query, weights, problem.output(query), error, direction, margin, strength, None, None,
        math.nan,
    )  # fmt: skip


def make_target(problem: ConstructionProblem, subset: Sequence[int]) -> Tensor:
    """Return equal weights on a subset, and 0 elsewhere."""
    target = torch.zeros(problem.num_keys, dtype=torch.float64)
    target[list(subset)] = 1 / len(subset)
    return target


def compute_error(weights: Tensor, target: Tensor) -> float:
    """Return the share of misplaced weight: half the sum of absolute differences."""
    return float((weights - target).abs().sum() / 2)


def find_least_strength(gaps: Array, num_inside: int, problem: ConstructionProblem) -> float:
    """Return the smallest strength at which the other keys get at most the tolerance t of the weight.

    At x = scale·strength their share is Σe^(−x·gap) / (m + Σe^(−x·gap)) for m keys of the subset, which is t if
    ln Σe^(−x·gap) = ln(m·t/(1−t)). The sum decreases in x, so there is one solution.
    """
    tolerance = problem.tolerance * WITHIN
    goal = math.log(num_inside) + math.log(tolerance) - math.log1p(-tolerance)
    excess = math.log(len(gaps)) - goal
    if excess <= 0:
        return 0.0
    smallest = float(gaps.min())
    relative = gaps / smallest
    root = brentq(lambda x: float(logsumexp(-x * relative)) - goal, 0.0, excess * (1 + 1e-9), xtol=1e-14)
    return float(root) / smallest / problem.scale


def bound_error(convex: Array, affine: Array, num_inside: int) -> float:
    """Return a lower bound of the error of every query, given Σ α k_a = Σ λ k_i.

    The logarithms of softmax's weights obey the same equation, Σ α ln w_a = Σ λ ln w_i. At error e each w_a is within
    1/m ± e and the others' weights add up to at most e, so that Σ λ ln w_i ≤ ln e − H with H = −Σ λ ln λ. While
    Σα⁺ ln(1/m − e) − Σα⁻ ln(1/m + e) is above that, e cannot be reached. For one key the bound is 1/(1 + e^−H).
    """
    entropy = -float(sum(weight * math.log(weight) for weight in convex if weight > 0))
    positive, negative = float(np.maximum(affine, 0).sum()), float(np.maximum(-affine, 0).sum())
    share = 1 / num_inside

    def excess(error: float) -> float:
        inside = positive * math.log(share - error) - negative * math.log(share + error)
        return inside - math.log(error) + entropy

    # Solved for ln e, since the error may have any order of magnitude.
    low, high = math.log(share) - 690, math.log(share) - 1e-15
    if excess(math.exp(low)) <= 0:
        return 0.0
    return math.exp(brentq(lambda logarithm: excess(math.exp(logarithm)), low, high, xtol=1e-13))
