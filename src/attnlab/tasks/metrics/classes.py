"""Figures of predicted classes: accuracy, F1 of a positive class, Matthews' correlation, and collapse.

With counts of true and false positives and negatives, F1 = 2TP / (2TP + FP + FN), and over any number of classes
Matthews' coefficient is the correlation of the two one-hot labellings (Gorodkin 2004), 0 if one of them is constant.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError


def check_pair(gold: object, predicted: object, *, are_classes: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return gold and predicted values as arrays of one length; an error names the first value that is wrong."""
    unit = "label" if are_classes else "score"
    first, second = _as_array(gold, f"gold {unit}", are_classes), _as_array(predicted, "prediction", are_classes)
    if first.shape != second.shape:
        raise TaskError(f"there are {second.size} predictions for {first.size} gold {unit}s; give one for each")
    return first, second


def _as_array(values: object, what: str, are_classes: bool) -> NDArray[Any]:
    given: NDArray[Any] = np.asarray(values)
    kind = "class number" if are_classes else "number"
    if given.ndim != 1 or given.size == 0:
        raise TaskError(f"the {what}s must be a list of {kind}s with at least one, not of shape {given.shape}")
    if given.dtype.kind not in ("biuf" if are_classes else "iuf"):
        hint = ", so convert labels first" if are_classes else ""
        raise TaskError(f"{what} 0 is {given[0]!r}; {kind}s are needed{hint}")
    is_wrong = ~np.isfinite(given)
    if are_classes:
        is_wrong |= (given != np.floor(given)) | (given < 0)
    wrong = np.flatnonzero(is_wrong)
    if wrong.size:
        raise TaskError(
            f"{what} {wrong[0]} is {given[wrong[0]]}, the first of {wrong.size}; each must be a finite {kind}. "
            "NaN means that the model diverged: check its loss"
        )
    return given.astype(np.int64 if are_classes else np.float64)


def accuracy(gold: object, predicted: object) -> float:
    """Return the share of predictions that are right."""
    first, second = check_pair(gold, predicted, are_classes=True)
    return int((first == second).sum()) / first.size


def f1(gold: object, predicted: object, positive: int = 1) -> float:
    """Return the F1 of the positive class; 0 if it is neither gold nor predicted."""
    first, second = check_pair(gold, predicted, are_classes=True)
    is_gold, is_predicted = first == positive, second == positive
    num_named = int(is_gold.sum()) + int(is_predicted.sum())
    return 2 * int((is_gold & is_predicted).sum()) / num_named if num_named else 0.0


def matthews(gold: object, predicted: object) -> float:
    """Return Matthews' correlation of two labellings; 0 if one of them has a single class."""
    first, second = check_pair(gold, predicted, are_classes=True)
    num_classes = int(max(first.max(), second.max())) + 1
    # Python's integers, since products of counts may exceed 64 bits.
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
    """Whether a model predicts a single class: the share of the largest class, and the predicted counts."""

    majority: str
    majority_rate: float
    predicted: dict[str, int]
    is_one_class: bool

    @property
    def sentence(self) -> str:
        """One line that says whether the model collapsed."""
        rate = f"always '{self.majority}' would reach an accuracy of {self.majority_rate:.4f}"
        if not self.is_one_class:
            return f"{len(self.predicted)} classes are predicted; {rate}"
        only = next(iter(self.predicted))
        return f"COLLAPSED: every prediction is '{only}'; {rate}"

    def record(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {
            "majority_label": self.majority,
            "majority_rate": self.majority_rate,
            "predicted_counts": self.predicted,
            "one_class_only": self.is_one_class,
        }


def collapse(gold: object, predicted: object, labels: tuple[str, ...] = ()) -> Collapse:
    """Return the majority rate of the gold labels, and how often each class is predicted; `labels` names classes."""
    first, second = check_pair(gold, predicted, are_classes=True)
    counts = np.bincount(first)
    majority = int(counts.argmax())
    seen, times = np.unique(second, return_counts=True)
    named = {_name(int(label), labels): int(count) for label, count in zip(seen, times, strict=True)}
    return Collapse(_name(majority, labels), int(counts[majority]) / first.size, named, seen.size == 1)


def _name(number: int, labels: tuple[str, ...]) -> str:
    return labels[number] if number < len(labels) else str(number)
