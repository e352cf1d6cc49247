"""What came out of one question put to a model: figures by name, and each example's share in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError, closest

from .metrics.classes import Collapse

LOWER_IS_BETTER = frozenset({
    "loss", "perplexity", "line_perplexity", "bits_per_byte", "honest_perplexity", "pseudo_perplexity", "squared_error",
})  # fmt: skip
"""Figures of which less is more; of all others more is."""


@dataclass(frozen=True)
class Scores:
    """Figures of a task, the scores of its examples in the order of `ids`, and what must be said with them."""

    task: str
    primary: str
    figures: Mapping[str, float]
    ids: Sequence[str]
    per_example: Mapping[str, NDArray[np.float64]]
    """A score for each example. Where a figure is a mean over examples, its scores have its name and its mean."""
    collapse: Collapse | None = None
    missing: Sequence[str] = field(default=())
    """Examples without a prediction that count as wrong, where the official script counts them so."""

    @property
    def value(self) -> float:
        """The figure that decides."""
        return self.figures[self.primary]

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the deciding figure is better."""
        return self.primary not in LOWER_IS_BETTER

    def of_examples(self, name: str) -> NDArray[np.float64]:
        """Return the scores of all examples under one name; a name without any is an error with the closest one."""
        if name not in self.per_example:
            known = ", ".join(self.per_example)
            raise TaskError(
                f"'{name}' is no score of single examples of '{self.task}'{closest(name, self.per_example) or '.'} "
                f"There are: {known}"
            )
        return self.per_example[name]

    def record(self) -> dict[str, object]:
        """Return the figures for programs to read, without the scores of single examples."""
        record: dict[str, object] = {"task": self.task, "primary": self.primary, **self.figures}
        if self.collapse is not None:
            record["collapse"] = self.collapse.record()
        if self.missing:
            record["missing"] = list(self.missing)
        return record


def per_example(ids: Sequence[str], **scores: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Return scores by id as arrays in the order of the ids."""
    return {name: np.array([by_id[key] for key in ids], dtype=np.float64) for name, by_id in scores.items()}
