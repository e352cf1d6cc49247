"""A query that spreads its weight evenly over some keys and leaves none to the others: one key is selection, several
or all are averaging. Where there is no such query, the proof of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import logsumexp
from torch import Tensor

from attnlab.charts import Spec

from . import pictures
from .problem import ConstructionProblem
from .separation import Array, Separation, separate
from .words import equation, name_key, name_keys, short

WITHIN = 1 - 1e-9
"""The part of a tolerance that is aimed at, so that rounding does not lift an error above it."""
NUDGES = (0.0, *(10.0**power for power in range(-15, 0)))
"""By which parts a strength may grow until the kernel's own rounding reaches the tolerance too."""


@dataclass(frozen=True, eq=False)
class Focus:
    """A query for a subset of the keys, or the proof that there is none (`feasible` False, `query` None)."""

    problem: ConstructionProblem
    subset: tuple[int, ...]
    feasible: bool | None
    """Whether a query exists; None where the keys are too near to the border for float64 to tell."""
    query: Tensor | None
    """strength · direction."""
    weights: Tensor | None
    """The kernel's weights of the query."""
    output: Tensor | None
    """The kernel's output of the query."""
    error: float
    """The share of the weight in the wrong place, ½ Σ|w − target|. Without a query: the least that any query has."""
    direction: Tensor
    """The unit vector of the largest margin."""
    margin: float
    """By how much q·k exceeds every other key's at ‖q‖ = 1: the distance between the subset's affine hull and the
    convex hull of the others. Infinite where there are no others."""
    strength: float
    """The smallest ‖q‖ along the direction that reaches the tolerance; infinite without a query."""
    combination: Tensor | None
    """Where there is no query: non-negative weights of the other keys, with sum 1, …"""
    affine: Tensor | None
    """… and weights of the subset's keys, with sum 1, that give the same point."""
    residual: float
    """How far apart the two points are, in units of the keys; NaN with a query."""

    @property
    def target(self) -> Tensor:
        """The weights that were asked for."""
        return target_of(self.problem, self.subset)

    @property
    def naive_query(self) -> Tensor:
        """What one would try on paper: the key itself, or the mean of the keys."""
        return self.problem.keys[list(self.subset)].mean(dim=0)

    @property
    def naive(self) -> Tensor:
        """The weights of the naive query."""
        return self.problem.weights(self.naive_query)

    def figure(self) -> Spec:
        """Draw the weights and how they grow with the strength; without a query, the combination that forbids it."""
        return pictures.draw_focus(self) if self.query is not None else pictures.draw_proof(self)

    def __str__(self) -> str:
        names = name_keys(self.subset)
        verb = "selects" if len(self.subset) == 1 else "averages"
        if self.feasible is None:
            return (
                f"float64 cannot tell whether a query {verb} {names}: a margin, if there is one, is below the rounding "
                f"of the scores (best found {short(self.margin)}, nearest combination {short(self.residual)} away)."
            )
        if self.feasible:
            if self.strength == 0:
                return f"q = 0 {verb} {names}: every key has the same weight, error {short(self.error)}."
            return (
                f"A query of strength {short(self.strength)} {verb} {names} with error {short(self.error)}; "
                f"at strength 1 its margin is {short(self.margin)}, the largest there is."
            )
        return self._refusal(names, verb)

    def _refusal(self, names: str, verb: str) -> str:
        assert self.combination is not None
        assert self.affine is not None
        sides = f"{equation(self.affine)} = {equation(self.combination)}"
        if len(self.subset) == 1:
            return (
                f"No query {verb} {names}: {sides} lies in the convex hull of the other keys, so one of them always "
                f"scores at least as much. {name_key(self.subset[0])} never gets more than {short(1 - self.error)}."
            )
        left = f" An uneven one of error {short(self.error)} or more is not excluded." if self._may_be_uneven else ""
        return (
            f"No query {verb} {names} above all others: {sides}, so a query that scores {names} alike scores another "
            f"key at least as much. Every query has an error of {short(self.error)} or more.{left}"
        )

    @property
    def _may_be_uneven(self) -> bool:
        return self.error <= self.problem.tolerance


def focus(problem: ConstructionProblem, subset: tuple[int, ...]) -> Focus:
    """Find the query of the largest margin and smallest strength for a subset, or prove that there is none."""
    if len(subset) == problem.num_keys:
        return _reached(problem, subset, torch.zeros(problem.keys.shape[1], dtype=torch.float64), math.inf, 0.0)
    found = separate(problem.keys.numpy(), subset)
    direction = torch.from_numpy(found.direction)
    if found.is_possible:
        start = least_strength(found.gaps, len(subset), problem)
        for nudge in NUDGES:
            reached = _reached(problem, subset, direction, found.margin, start * (1 + nudge))
            if reached.error <= problem.tolerance:
                return reached
    return _unreached(problem, subset, found)


def _reached(
    problem: ConstructionProblem, subset: tuple[int, ...], direction: Tensor, margin: float, strength: float
) -> Focus:
    query = strength * direction
    weights = problem.weights(query)
    return Focus(
        problem, subset, True, query, weights, problem.output(query), misplaced(weights, target_of(problem, subset)),
        direction, margin, strength, None, None, math.nan,
    )  # fmt: skip


def _unreached(problem: ConstructionProblem, subset: tuple[int, ...], found: Separation) -> Focus:
    is_proven = found.is_possible is False
    return Focus(
        problem, subset, False if is_proven else None, None, None, None,
        least_error(found.convex, found.affine, len(subset)) if is_proven else math.nan,
        torch.from_numpy(found.direction), found.margin, math.inf,
        torch.from_numpy(found.convex), torch.from_numpy(found.affine), found.residual,
    )  # fmt: skip


def target_of(problem: ConstructionProblem, subset: Sequence[int]) -> Tensor:
    """Return equal weights on a subset, and 0 elsewhere."""
    target = torch.zeros(problem.num_keys, dtype=torch.float64)
    target[list(subset)] = 1 / len(subset)
    return target


def misplaced(weights: Tensor, target: Tensor) -> float:
    """Return the share of the weight in the wrong place: half the sum of all differences."""
    return float((weights - target).abs().sum() / 2)


def least_strength(gaps: Array, num_inside: int, problem: ConstructionProblem) -> float:
    """Return the smallest s at which e^(−scale·s·gap), summed over the others, is small enough beside the subset's.

    The others' share is Σe^(−x·gap) / (m + Σe^(−x·gap)) for m keys of the subset: at most the tolerance t from where
    ln Σe^(−x·gap) has fallen to ln(m·t/(1−t)). It falls all the way, so there is one such x.
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


def least_error(convex: Array, affine: Array, num_inside: int) -> float:
    """Return the error that no query comes below, given Σ α k_a = Σ λ k_i.

    The logarithms of softmax's weights obey the same equation, Σ α ln w_a = Σ λ ln w_i. At error e each w_a is within
    1/m ± e and the others' weights add up to at most e, so that Σ λ ln w_i ≤ ln e − H with H = −Σ λ ln λ. As long as
    Σα⁺ ln(1/m − e) − Σα⁻ ln(1/m + e) is above that, e is out of reach. For one key this is e = 1/(1 + e^−H).
    """
    entropy = -float(sum(weight * math.log(weight) for weight in convex if weight > 0))
    positive, negative = float(np.maximum(affine, 0).sum()), float(np.maximum(-affine, 0).sum())
    share = 1 / num_inside

    def excess(error: float) -> float:
        inside = positive * math.log(share - error) - negative * math.log(share + error)
        return inside - math.log(error) + entropy

    # Solved for ln e: the error may be of any size.
    low, high = math.log(share) - 690, math.log(share) - 1e-15
    if excess(math.exp(low)) <= 0:
        return 0.0
    return math.exp(brentq(lambda logarithm: excess(math.exp(logarithm)), low, high, xtol=1e-13))
