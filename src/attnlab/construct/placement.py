"""A new key for a given query, such that attention averages its value with others, or returns it alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.errors import RequestError, closest
from attnlab.kernels.rounding import show_residual

from . import pictures
from .construction import Construction
from .focus import compute_error, find_least_strength, make_target
from .problem import (
    TOLERANCE,
    ConstructionProblem,
    Numbers,
    read_positive,
    read_problem,
    read_subset,
    read_values,
    read_vector,
)
from .separation import unit_vector
from .words import name_keys, short

Goal = Literal["average", "select"]


@dataclass(frozen=True, eq=False, repr=False)
class Placement(Construction):
    """A new key, the last of `problem.keys`, and the weights and output of the query with it."""

    problem: ConstructionProblem
    goal: Goal
    subset: tuple[int, ...]
    """The keys that should share the weight; the new one is the last."""
    query: Tensor
    key: Tensor
    weights: Tensor
    output: Tensor
    error: float
    """The share of misplaced weight, ½ Σ|w − target|. If it exceeds the tolerance, no key has less."""
    least_norm: float
    """The smallest norm at which a key in the direction of the query reaches the tolerance alone."""
    strength: float
    """The smallest ‖q‖ in the direction of the query at which this key reaches the tolerance alone, or infinity."""

    @property
    def feasible(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error <= self.problem.tolerance

    @property
    def before(self) -> Tensor:
        """The weights without the new key."""
        old = ConstructionProblem(self.problem.keys[:-1], None, self.problem.scale, self.problem.tolerance)
        return old.weights(self.query)

    def figure(self) -> Spec:
        """Draw the weights before and after, and how they change with the new key's length."""
        return pictures.draw_placement(self)

    def __str__(self) -> str:
        length, names = short(float(self.key.norm())), name_keys(self.subset)
        error = show_residual(self.error)
        if self.goal == "average":
            if self.feasible:
                return f"A key of norm {length} makes the query average {names} with error {error}."
            why = (
                "a query of 0 weighs every key alike, whatever the keys are"
                if not self.query.any()
                else "the query weighs the keys that are there unevenly, or others too much"
            )
            return f"No key makes the query average {names}: the best has error {error}, since {why}."
        if self.feasible:
            return f"A key of norm {length} along the query is returned with error {error}."
        if not self.query.any():
            return f"No key is returned: a query of 0 weighs every key alike, error {error}."
        stronger = (
            f"the query must have norm {short(self.strength)}, not {short(float(self.query.norm()))}"
            if math.isfinite(self.strength)
            else "no stronger query helps, since another key scores as much"
        )
        return (
            f"No key of norm {length} is returned: the best one, along the query, has error {error}. "
            f"At this norm {stronger}; at this query the key must have norm {short(self.least_norm)}."
        )


def place_key(
    keys: Numbers, query: Numbers, goal: Goal = "average", *, subset: Sequence[int] | None = None,
    norm: float | None = None, values: Numbers | None = None, scale: float | None = None, tolerance: float = TOLERANCE,
) -> Placement:  # fmt: skip
    """Find one more key, for a given query.

    goal="average": the shortest key such that the query averages its value with those of a subset, by default the two
    keys with the largest scores. goal="select": the key of a given norm, 1 by default, that the query returns alone,
    or the best one, along q. values [n+1 e]: the last row is the new key's. keys and scale are those of `select`.
    """
    if goal not in get_args(Goal):
        raise RequestError(f"goal must be 'average' or 'select', not {goal!r}{closest(str(goal), get_args(Goal))}")
    problem = read_problem(keys, None, scale, tolerance)
    q = read_vector("query", query, problem.keys.shape[1])
    mixed = read_values(values, problem.num_keys + 1)
    if goal == "select":
        if subset is not None:
            raise RequestError("subset belongs to goal='average'; goal='select' returns the new value alone")
        length = 1.0 if norm is None else read_positive("norm", norm)
        return _place(problem, mixed, q, goal, (), _normalise(q) * length)
    if norm is not None:
        raise RequestError("norm belongs to goal='select'; the key of goal='average' is the shortest there is")
    best = problem.scores(q).argsort(descending=True, stable=True)[:2].tolist()
    chosen = read_subset(best if subset is None else subset, problem.num_keys)
    candidates = [_place(problem, mixed, q, goal, chosen, key) for key in _find_averaging_keys(problem, q, chosen)]
    return candidates[0] if candidates[0].feasible else min(candidates, key=lambda placement: placement.error)


def _find_averaging_keys(problem: ConstructionProblem, query: Tensor, subset: tuple[int, ...]) -> list[Tensor]:
    """Return the candidates for the best key; the first has the same score as the subset.

    If the new key takes the share ω, the others keep (1 − ω) of their weights p, so that the error is convex and
    piecewise linear in ω: it is smallest where a weight reaches its target τ, at ω = τ or 1 − τ/p.
    """
    scores, old = problem.scores(query), problem.weights(query)[list(subset)]
    target = 1 / (len(subset) + 1)
    shares = [target, *(1 - target / old[old > target]).tolist()]
    tied = torch.logsumexp(scores[list(subset)], 0) - math.log(len(subset))
    wanted = [tied, *(torch.logsumexp(scores, 0) + math.log(share / (1 - share)) for share in shares)]
    length = float(query.norm())
    return [_normalise(query) * (float(score) / problem.scale / length if length else 0.0) for score in wanted]


def _normalise(query: Tensor) -> Tensor:
    """Return the unit vector in the direction of a query; an arbitrary one if the query is 0."""
    direction = torch.from_numpy(unit_vector(query.numpy()))
    return direction if direction.any() else torch.eye(len(query), dtype=torch.float64)[0]


def _place(
    problem: ConstructionProblem, values: Tensor | None, query: Tensor, goal: Goal, subset: tuple[int, ...], key: Tensor
) -> Placement:
    extended = ConstructionProblem(torch.cat([problem.keys, key[None]]), values, problem.scale, problem.tolerance)
    shared = (*subset, problem.num_keys)
    weights = extended.weights(query)
    length, norm = float(query.norm()), float(key.norm())
    needed = torch.logsumexp(problem.scores(query), 0) + math.log(1 / problem.tolerance - 1)
    gaps = norm - (problem.keys @ _normalise(query)).numpy()
    least_norm = max(float(needed), 0.0) / problem.scale / length if length else math.inf
    strength = find_least_strength(gaps, 1, problem) if gaps.min() > 0 and length else math.inf
    output, error = extended.output(query), compute_error(weights, make_target(extended, shared))
    return Placement(extended, goal, shared, query, key, weights, output, error, least_norm, strength)
