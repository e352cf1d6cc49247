"""Placing a key: one more key such that a given query averages its value with others, or returns it alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.errors import RequestError, closest

from . import pictures
from .focus import least_strength, misplaced, target_of
from .separation import unit_vector
from .setting import (
    TOLERANCE,
    Numbers,
    Setting,
    is_number,
    read_setting,
    read_subset,
    read_values,
    read_vector,
)
from .words import name_keys, short

Goal = Literal["average", "select"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A new key, the last of `setting.keys`, and what the query makes of all keys then."""

    setting: Setting
    goal: Goal
    subset: tuple[int, ...]
    """The keys that are to share the weight; the new one is the last."""
    query: Tensor
    key: Tensor
    weights: Tensor
    output: Tensor
    error: float
    """The share of the weight in the wrong place, ½ Σ|w − target|. Where it is too much, no key has less."""
    least_norm: float
    """The norm from which on a key in the query's direction reaches the tolerance on its own."""
    strength: float
    """The smallest ‖q‖ in the query's direction for which this key reaches the tolerance on its own, or infinity."""

    @property
    def feasible(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error <= self.setting.tolerance

    @property
    def before(self) -> Tensor:
        """The weights without the new key."""
        old = Setting(self.setting.keys[:-1], None, self.setting.scale, self.setting.tolerance)
        return old.weights(self.query)

    def figure(self) -> Spec:
        """Draw the weights before and after, and how they change with the new key's length."""
        return pictures.draw_placement(self)

    def __str__(self) -> str:
        length, names = short(float(self.key.norm())), name_keys(self.subset)
        if self.goal == "average":
            if self.feasible:
                return f"A key of norm {length} makes the query average {names} with error {short(self.error)}."
            why = (
                "a query of 0 weighs every key alike, whatever the keys are"
                if not self.query.any()
                else "the query weighs the keys that are there unevenly, or others too much"
            )
            return f"No key makes the query average {names}: the best has error {short(self.error)}, since {why}."
        if self.feasible:
            return f"A key of norm {length} along the query is returned with error {short(self.error)}."
        if not self.query.any():
            return f"No key is returned: a query of 0 weighs every key alike, error {short(self.error)}."
        stronger = (
            f"the query must have norm {short(self.strength)}, not {short(float(self.query.norm()))}"
            if math.isfinite(self.strength)
            else "no stronger query helps, since another key scores as much"
        )
        return (
            f"No key of norm {length} is returned: the best one, along the query, has error {short(self.error)}. "
            f"At this norm {stronger}; at this query the key must have norm {short(self.least_norm)}."
        )


def place_key(
    keys: Numbers,
    query: Numbers,
    goal: Goal = "average",
    *,
    subset: Sequence[int] | None = None,
    norm: float | None = None,
    values: Numbers | None = None,
    scale: float | None = None,
    tolerance: float = TOLERANCE,
) -> Placement:
    """Find one more key, for a given query.

    goal="average": the shortest key that makes the query average the new value with those of a subset, three values
    with the subset's default, the two keys of the largest scores.
    goal="select": the key of a norm, 1 unless said, that the query returns alone, or the best there is: along q.
    values [n+1 e]: the last row is the new key's. keys and scale are those of `select`.
    """
    if goal not in get_args(Goal):
        raise RequestError(f"goal must be 'average' or 'select', not {goal!r}{closest(str(goal), get_args(Goal))}")
    setting = read_setting(keys, None, scale, tolerance)
    q = read_vector("query", query, setting.keys.shape[1])
    mixed = read_values(values, setting.num_keys + 1)
    if goal == "select":
        if subset is not None:
            raise RequestError("subset belongs to goal='average'; goal='select' returns the new value alone")
        return _place(setting, mixed, q, goal, (), along(q) * _read_norm(norm))
    if norm is not None:
        raise RequestError("norm belongs to goal='select'; the key of goal='average' is the shortest there is")
    best = setting.scores(q).argsort(descending=True, stable=True)[:2].tolist()
    chosen = read_subset(best if subset is None else subset, setting.num_keys)
    candidates = [_place(setting, mixed, q, goal, chosen, key) for key in averaging_keys(setting, q, chosen)]
    is_tied_enough = candidates[0].feasible
    return candidates[0] if is_tied_enough else min(candidates, key=lambda placed: placed.error)


def averaging_keys(setting: Setting, query: Tensor, subset: tuple[int, ...]) -> list[Tensor]:
    """Return the keys that may be best, the one that ties with the subset first.

    If the new key takes the share ω, the others keep (1 − ω) of their weights p, so that the error is convex and
    piecewise linear in ω: it is least where a weight reaches its target τ, at ω = τ or 1 − τ/p.
    """
    scores, old = setting.scores(query), setting.weights(query)[list(subset)]
    target = 1 / (len(subset) + 1)
    shares = [target, *(1 - target / old[old > target]).tolist()]
    tied = torch.logsumexp(scores[list(subset)], 0) - math.log(len(subset))
    wanted = [tied, *(torch.logsumexp(scores, 0) + math.log(share / (1 - share)) for share in shares)]
    length = float(query.norm())
    return [along(query) * (float(score) / setting.scale / length if length else 0.0) for score in wanted]


def along(query: Tensor) -> Tensor:
    """Return the unit vector along a query; any will do where the query is 0."""
    direction = torch.from_numpy(unit_vector(query.numpy()))
    return direction if direction.any() else torch.eye(len(query), dtype=torch.float64)[0]


def _place(
    setting: Setting, values: Tensor | None, query: Tensor, goal: Goal, subset: tuple[int, ...], key: Tensor
) -> Placement:
    extended = Setting(torch.cat([setting.keys, key[None]]), values, setting.scale, setting.tolerance)
    shared = (*subset, setting.num_keys)
    weights = extended.weights(query)
    length, norm = float(query.norm()), float(key.norm())
    needed = torch.logsumexp(setting.scores(query), 0) + math.log(1 / setting.tolerance - 1)
    gaps = norm - (setting.keys @ along(query)).numpy()
    return Placement(
        setting=extended,
        goal=goal,
        subset=shared,
        query=query,
        key=key,
        weights=weights,
        output=extended.output(query),
        error=misplaced(weights, target_of(extended, shared)),
        least_norm=max(float(needed), 0.0) / setting.scale / length if length else math.inf,
        strength=least_strength(gaps, 1, setting) if gaps.min() > 0 and length else math.inf,
    )


def _read_norm(norm: float | None) -> float:
    if norm is None:
        return 1.0
    if not is_number(norm) or not 0 < norm < math.inf:
        raise RequestError(f"norm must be a number above 0, not {norm!r}")
    return float(norm)
