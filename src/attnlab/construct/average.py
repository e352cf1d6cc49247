"""Averaging: q = 0 for all keys; for some of them a query that scores them alike and above the others."""

from __future__ import annotations

from collections.abc import Sequence

from .focus import Focus, focus
from .problem import TOLERANCE, Numbers, read_problem, read_subset


def average(
    keys: Numbers,
    subset: Sequence[int] | None = None,
    *,
    values: Numbers | None = None,
    scale: float | None = None,
    tolerance: float = TOLERANCE,
) -> Focus:
    """Find the query that weighs the keys of a subset equally and no other, or prove that there is none.

    Without a subset all keys are averaged, and q = 0 does it exactly. The mean of the keys, which one would try on
    paper, scores them alike only where their lengths are equal; made stronger it selects one. `naive` has its weights.
    keys, values, scale and the margin are those of `select`.
    """
    problem = read_problem(keys, values, scale, tolerance)
    return focus(problem, read_subset(subset, problem.num_keys))
