"""What came out of one question put to a model: figures by name, and each example's share in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import TaskError, closest

from .metrics.classes import Collapse

LOWER_IS_BETTER = frozenset({
    "loss", "perplexity", "line_perplexity", "bits_per_byte", "honest_perplexity", "pseudo_perplexity", "squared_error",
})  # fmt: skip
"""Figures of which less is more; of all others more is."""

LOG_FIGURES: Mapping[str, str] = {
    "perplexity": "loss",
    "line_perplexity": "",
    "honest_perplexity": "honest_loss",
    "pseudo_perplexity": "pseudo_loss",
}
"""Figures that are compared on the log scale, each with the score of single examples whose mean is its natural log.

The mean of lines' own perplexities is no exp of any mean, so it has no such score.
"""


@dataclass(frozen=True)
class Reference:
    """What a trivial strategy reaches on a task, in the unit of its deciding figure, and what that strategy is."""

    value: float
    strategy: str


@dataclass(frozen=True)
class Scores:
    """Figures of a task, the scores of its examples in the order of `ids`, and what must be said with them."""

    task: str
    primary: str
    figures: Mapping[str, float]
    ids: Sequence[str]
    per_example: Mapping[str, NDArray[np.float64]]
    """A score for each example. Scores that have the name of a figure have that figure as their mean."""
    collapse: Collapse | None = None
    missing: Sequence[str] = field(default=())
    """Examples without a prediction that count as wrong, where the official script counts them so."""
    clusters: Sequence[str] | None = None
    """The cluster of each example, such as the article its question is about; None: each example is on its own."""
    floor: Reference | None = None
    """The best of the trivial strategies on these examples; None where it is not known."""
    ceiling: float | None = None
    """The best value that the deciding figure can have; None where there is no known one."""

    @property
    def value(self) -> float:
        """The figure that decides."""
        return self.figures[self.primary]

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the deciding figure is better."""
        return self.primary not in LOWER_IS_BETTER

    @property
    def num_clusters(self) -> int:
        """How many clusters the examples form; 0 where each is on its own."""
        return 0 if self.clusters is None else len(set(self.clusters))

    def of_examples(self, name: str) -> NDArray[np.float64]:
        """Return the scores of all examples under one name; a name without any is an error with the closest one."""
        if name not in self.per_example:
            known = ", ".join(self.per_example)
            raise TaskError(
                f"'{name}' is no score of single examples of '{self.task}'{closest(name, self.per_example) or '.'} "
                f"There are: {known}"
            )
        return self.per_example[name]

    @property
    def reference(self) -> dict[str, object]:
        """What the deciding figure is held against, and over how many examples it was taken, as plain data."""
        return {
            "floor": None if self.floor is None else self.floor.value,
            "floor_strategy": "" if self.floor is None else self.floor.strategy,
            "ceiling": self.ceiling,
            "num_documents": len(self.ids),
            "num_clusters": self.num_clusters,
        }

    def record(self) -> dict[str, object]:
        """Return the figures for programs to read, without the scores of single examples."""
        record: dict[str, object] = {"task": self.task, "primary": self.primary, **self.figures}
        if self.collapse is not None:
            record["collapse"] = self.collapse.record()
        if self.missing:
            record["missing"] = list(self.missing)
        record["reference"] = self.reference
        return record


def per_example(ids: Sequence[str], **scores: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    """Return scores by id as arrays in the order of the ids."""
    return {name: np.array([by_id[key] for key in ids], dtype=np.float64) for name, by_id in scores.items()}


def shares_of_mean(parts: ArrayLike, total: float) -> NDArray[np.float64]:
    """Return each example's part of a ratio sum(parts) / total, scaled so that their mean is that ratio."""
    values = np.asarray(parts, dtype=np.float64)
    return values * (len(values) / total)
