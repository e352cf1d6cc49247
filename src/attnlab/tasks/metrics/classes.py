"""Figures of predicted classes: accuracy, F1 of a positive class, Matthews' correlation, and collapse.

With counts of true and false positives and negatives, F1 = 2TP / (2TP + FP + FN), and over any number of classes
Matthews' coefficient is the correlation of the two one-hot labellings (Gorodkin 2004), 0 where one of them is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError

Classes = NDArray[np.int64]


def as_classes(values: object, what: str) -> Classes:
    """Return class numbers as an array; anything else, NaN first, is an error that names the place."""
    given: NDArray[Any] = np.asarray(values)
    if given.ndim != 1 or given.size == 0:
        raise TaskError(f"the {what}s must be a list of class numbers with at least one, not of shape {given.shape}")
    if given.dtype.kind not in "biuf":
        raise TaskError(f"{what} 0 is {given[0]!r}; class numbers are needed, so look labels up first")
    wrong = np.flatnonzero(~np.isfinite(given) | (given != np.floor(given)) | (given < 0))
    if wrong.size:
        raise TaskError(
            f"{what} {wrong[0]} is {given[wrong[0]]}, the first of {wrong.size}; each must be a class number. "
            "A NaN comes from a model that diverged: look at its loss"
        )
    return given.astype(np.int64)


def both(gold: object, predicted: object) -> tuple[Classes, Classes]:
    """Return gold and predicted classes as arrays of one length."""
    first, second = as_classes(gold, "gold label"), as_classes(predicted, "prediction")
    if first.shape != second.shape:
        raise TaskError(f"there are {second.size} predictions for {first.size} gold labels; each needs exactly one")
    return first, second


def accuracy(gold: object, predicted: object) -> float:
    """Return the share of predictions that are right."""
    first, second = both(gold, predicted)
    return int((first == second).sum()) / first.size


def f1(gold: object, predicted: object, positive: int = 1) -> float:
    """Return the F1 of the positive class; 0 where it is neither there nor predicted."""
    first, second = both(gold, predicted)
    is_gold, is_predicted = first == positive, second == positive
    num_named = int(is_gold.sum()) + int(is_predicted.sum())
    return 2 * int((is_gold & is_predicted).sum()) / num_named if num_named else 0.0


def matthews(gold: object, predicted: object) -> float:
    """Return Matthews' correlation of two labellings; 0 where one of them has a single class."""
    first, second = both(gold, predicted)
    num_classes = int(max(first.max(), second.max())) + 1
    # Python's integers: products of counts pass 64 bits sooner than one would think.
    count_gold = [int(n) for n in np.bincount(first, minlength=num_classes)]
    count_predicted = [int(n) for n in np.bincount(second, minlength=num_classes)]
    n, num_right = first.size, int((first == second).sum())
    covariance = num_right * n - sum(a * b for a, b in zip(count_gold, count_predicted, strict=True))
    variance_gold = n * n - sum(a * a for a in count_gold)
    variance_predicted = n * n - sum(b * b for b in count_predicted)
    if variance_gold == 0 or variance_predicted == 0:
        return 0.0
    return float(covariance / np.sqrt(float(variance_gold) * float(variance_predicted)))


@dataclass(frozen=True)
class Collapse:
    """Whether a model learned to tell classes apart at all: the share of the largest class, and what was predicted."""

    majority: str
    majority_rate: float
    predicted: dict[str, int]
    is_one_class: bool

    @property
    def sentence(self) -> str:
        """Say in one line whether the predictions tell anything."""
        rate = f"always '{self.majority}' would reach an accuracy of {self.majority_rate:.4f}"
        if not self.is_one_class:
            return f"{len(self.predicted)} classes are predicted; {rate}"
        only = next(iter(self.predicted))
        return f"COLLAPSED: every prediction is '{only}'; {rate}"

    def record(self) -> dict[str, object]:
        """Return it for programs to read."""
        return {
            "majority_label": self.majority,
            "majority_rate": self.majority_rate,
            "predicted_counts": self.predicted,
            "one_class_only": self.is_one_class,
        }


def collapse(gold: object, predicted: object, labels: tuple[str, ...] = ()) -> Collapse:
    """Return the majority rate of the gold labels, and how often each class is predicted; `labels` names classes."""
    first, second = both(gold, predicted)
    counts = np.bincount(first)
    majority = int(counts.argmax())
    seen, times = np.unique(second, return_counts=True)
    named = {_name(int(one), labels): int(count) for one, count in zip(seen, times, strict=True)}
    return Collapse(_name(majority, labels), int(counts[majority]) / first.size, named, seen.size == 1)


def _name(number: int, labels: tuple[str, ...]) -> str:
    return labels[number] if number < len(labels) else str(number)
