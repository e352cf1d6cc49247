"""Selection: a query for one key, or one for each, which together make attention the identity map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from attnlab.charts import Spec, heatmap

from .focus import Focus, focus
from .problem import TOLERANCE, ConstructionProblem, Numbers, read_index, read_problem
from .words import name_key, name_keys, short


def select(
    keys: Numbers,
    j: SupportsIndex,
    *,
    values: Numbers | None = None,
    scale: float | None = None,
    tolerance: float = TOLERANCE,
) -> Focus:
    """Find the query that gives key j all weight but the tolerance, or prove that there is none.

    keys [n d]: a tensor, an array or lists. values [n e]: what is mixed; the weights themselves if left out.
    scale: what q·k is multiplied with; 1/√d if left out.
    The margin is Euclidean: the direction is the one in which k_j exceeds the others most, and the strength the
    smallest along it that reaches the tolerance.
    """
    problem = read_problem(keys, values, scale, tolerance)
    return focus(problem, (read_index(j, problem.num_keys),))


@dataclass(frozen=True, eq=False)
class Selections:
    """A query for each key, as rows. A row is NaN where there is none."""

    problem: ConstructionProblem
    each: tuple[Focus, ...]
    """The selection of every key on its own."""
    query: Tensor
    weights: Tensor
    output: Tensor

    @property
    def error(self) -> float:
        """The largest error of all keys; where a key cannot be selected, the least that any query has for it."""
        errors = [one.error for one in self.each]
        return math.nan if any(math.isnan(error) for error in errors) else max(errors)

    @property
    def feasible(self) -> bool | None:
        """Whether every key can be selected; None where float64 cannot tell for one, and none is impossible."""
        answers = {one.feasible for one in self.each}
        return False if False in answers else None if None in answers else True

    @property
    def impossible(self) -> tuple[int, ...]:
        """The keys that no query selects."""
        return tuple(number for number, one in enumerate(self.each) if one.feasible is False)

    def figure(self) -> Spec:
        """Draw the weights, a row for each query."""
        names = [name_key(number) for number in range(len(self.each))]
        picture = heatmap.Picture("The identity map", str(self), self.weights.nan_to_num(0.0).tolist())
        return heatmap.draw([picture], names, causal=False)

    def __str__(self) -> str:
        if self.feasible:
            return (
                f"Each of {len(self.each)} keys is selected by a query of its own, error {short(self.error)} at most."
            )
        if self.feasible is None:
            return "float64 cannot tell for every key whether a query selects it."
        lying = "it lies" if len(self.impossible) == 1 else "each lies"
        return f"No query selects {name_keys(self.impossible)}: {lying} in the convex hull of the other keys."


def select_all(
    keys: Numbers, *, values: Numbers | None = None, scale: float | None = None, tolerance: float = TOLERANCE
) -> Selections:
    """Find a query for each key, so that the weights are the identity up to the tolerance."""
    problem = read_problem(keys, values, scale, tolerance)
    each = tuple(focus(problem, (number,)) for number in range(problem.num_keys))

    def rows(found: list[Tensor | None]) -> Tensor:
        width = next((row.shape[0] for row in found if row is not None), problem.num_keys)
        empty = torch.full((width,), math.nan, dtype=torch.float64)
        return torch.stack([empty if row is None else row for row in found])

    return Selections(
        problem, each, rows([one.query for one in each]), rows([one.weights for one in each]),
        rows([one.output for one in each]),
    )  # fmt: skip
