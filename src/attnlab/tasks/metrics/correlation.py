"""Figures of predicted numbers: Pearson's correlation, and Spearman's, which is Pearson's of the ranks."""

from collections.abc import Callable
from typing import Any

import scipy

from attnlab.errors import TaskError

from .classes import check_pair


def pearson(gold: object, predicted: object) -> float:
    """Return Pearson's correlation; 0 if one side is constant."""
    return _correlate(scipy.stats.pearsonr, gold, predicted)


def spearman(gold: object, predicted: object) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; 0 if one side is constant."""
    return _correlate(scipy.stats.spearmanr, gold, predicted)


def _correlate(compute: Callable[..., Any], gold: object, predicted: object) -> float:
    first, second = check_pair(gold, predicted, are_classes=False)
    if first.size < 2:
        raise TaskError("a correlation needs two examples or more, not 1")
    if (first == first[0]).all() or (second == second[0]).all():
        return 0.0
    return float(compute(first, second).statistic)
