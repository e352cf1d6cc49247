"""Figures of predicted numbers: Pearson's correlation, and Spearman's, which is Pearson's of the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from attnlab.errors import TaskError

Numbers = NDArray[np.float64]


def as_numbers(values: object, what: str) -> Numbers:
    """Return values as an array of numbers; NaN or infinity is an error that names the place."""
    given: NDArray[Any] = np.asarray(values)
    if given.ndim != 1 or given.size == 0:
        raise TaskError(f"the {what}s must be a list of numbers with at least one, not of shape {given.shape}")
    if given.dtype.kind not in "iuf":
        raise TaskError(f"{what} 0 is {given[0]!r}; numbers are needed")
    numbers = given.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise TaskError(
            f"{what} {wrong[0]} is {numbers[wrong[0]]}, the first of {wrong.size}; each must be a finite number. "
            "A NaN comes from a model that diverged: look at its loss"
        )
    return numbers


def both(gold: object, predicted: object) -> tuple[Numbers, Numbers]:
    """Return gold and predicted numbers as arrays of one length, two at least."""
    first, second = as_numbers(gold, "gold score"), as_numbers(predicted, "prediction")
    if first.shape != second.shape:
        raise TaskError(f"there are {second.size} predictions for {first.size} gold scores; each needs exactly one")
    if first.size < 2:
        raise TaskError("a correlation needs two examples or more, not 1")
    return first, second


def pearson(gold: object, predicted: object) -> float:
    """Return Pearson's correlation; 0 where one side is constant and it has no value."""
    first, second = both(gold, predicted)
    if is_constant(first) or is_constant(second):
        return 0.0
    return float(stats.pearsonr(first, second).statistic)


def spearman(gold: object, predicted: object) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; 0 where one side is constant."""
    first, second = both(gold, predicted)
    if is_constant(first) or is_constant(second):
        return 0.0
    return float(stats.spearmanr(first, second).statistic)


def is_constant(numbers: Numbers) -> bool:
    """Tell whether all numbers are the same."""
    return bool((numbers == numbers[0]).all())
