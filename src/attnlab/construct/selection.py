"""A query for each key, which together make attention the identity map."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnlab.charts import Spec, heatmap
from attnlab.kernels.rounding import show_residual

from .construction import Construction
from .focus import Focus, find_focus
from .problem import TOLERANCE, ConstructionProblem, Numbers, read_problem
from .words import name_key, name_keys


@dataclass(frozen=True, eq=False, repr=False)
class Selections(Construction):
    """A query for each key, as rows. The row of a key that cannot be selected is NaN."""

    problem: ConstructionProblem
    each: tuple[Focus, ...]
    """The selection of each key."""
    query: Tensor
    weights: Tensor
    output: Tensor

    @property
    def error(self) -> float:
        """The largest error of all keys; for a key that cannot be selected, the lower bound of every query."""
        return float(np.max([selection.error for selection in self.each]))

    @property
    def feasible(self) -> bool | None:
        """Whether every key can be selected; None if float64 cannot tell for some, and none is impossible."""
        answers = {selection.feasible for selection in self.each}
        return False if False in answers else None if None in answers else True

    @property
    def impossible(self) -> tuple[int, ...]:
        """The keys that no query selects."""
        return tuple(number for number, selection in enumerate(self.each) if selection.feasible is False)

    def figure(self) -> Spec:
        """Draw the weights, a row for each query."""
        names = [name_key(number) for number in range(len(self.each))]
        picture = heatmap.Picture("The identity map", str(self), self.weights.nan_to_num(0.0).tolist())
        return heatmap.draw([picture], names, causal=False)

    def __str__(self) -> str:
        if self.feasible:
            error = show_residual(self.error)
            return f"Each of {len(self.each)} keys is selected by a query of its own, error {error} at most."
        if self.feasible is None:
            return "float64 cannot tell for every key whether a query selects it."
        lying = "it lies" if len(self.impossible) == 1 else "each lies"
        return f"No query selects {name_keys(self.impossible)}: {lying} in the convex hull of the other keys."


def select_all(
    keys: Numbers, *, values: Numbers | None = None, scale: float | None = None, tolerance: float = TOLERANCE
) -> Selections:
    """Find a query for each key, so that the weights are the identity up to the tolerance."""
    problem = read_problem(keys, values, scale, tolerance)
    each = tuple(find_focus(problem, (number,)) for number in range(problem.num_keys))

    def stack(rows: list[Tensor | None]) -> Tensor:
        width = next((row.shape[0] for row in rows if row is not None), problem.num_keys)
        empty = torch.full((width,), math.nan, dtype=torch.float64)
        return torch.stack([empty if row is None else row for row in rows])

    queries, weights = stack([selection.query for selection in each]), stack([selection.weights for selection in each])
    return Selections(problem, each, queries, weights, stack([selection.output for selection in each]))
