"""The scores of a model on a task: figures by name, and the scores of each example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import TaskError, closest

from .metrics.classes import Collapse

LOWER_IS_BETTER = frozenset({
    "loss", "perplexity", "line_perplexity", "bits_per_byte", "leak_free_perplexity", "pseudo_perplexity",
    "squared_error",
})  # fmt: skip
"""Figures that are better if lower; all others are better if higher."""

LOG_FIGURES: Mapping[str, str] = {
    "perplexity": "loss",
    "line_perplexity": "",
    "leak_free_perplexity": "leak_free_loss",
    "pseudo_perplexity": "pseudo_loss",
}
"""Figures compared on the log scale, each with the per-example score whose mean is its natural log.

`line_perplexity`, a mean of perplexities, is not the exp of a mean, so it has no such score.
"""


@dataclass(frozen=True)
class Reference:
    """The primary figure that a trivial strategy reaches on a task, and the name of that strategy."""

    value: float
    strategy: str


@dataclass(frozen=True)
class Scores:
    """Figures of a task, the scores of its examples in the order of `ids`, and what qualifies them."""

    task: str
    primary: str
    figures: Mapping[str, float]
    ids: Sequence[str]
    per_example: Mapping[str, NDArray[np.float64]]
    """A score for each example. The mean of scores named like a figure is that figure."""
    collapse: Collapse | None = None
    missing: Sequence[str] = field(default=())
    """Examples without a prediction, if the official script counts them as wrong."""
    clusters: Sequence[str] | None = None
    """The cluster of each example, such as the article of its question; None if examples are independent."""
    floor: Reference | None = None
    """The best trivial strategy on these examples; None if it is not known."""
    ceiling: float | None = None
    """The best possible value of the primary figure; None if it is not known."""

    @property
    def value(self) -> float:
        """The primary figure."""
        return self.figures[self.primary]

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher primary figure is better."""
        return self.primary not in LOWER_IS_BETTER

    @property
    def num_clusters(self) -> int:
        """How many clusters the examples form; 0 if they are independent."""
        return len(set(self.clusters or ()))

    def of_examples(self, name: str) -> NDArray[np.float64]:
        """Return the scores of all examples by name; an unknown name is an error with the closest match."""
        if name not in self.per_example:
            known = ", ".join(self.per_example)
            raise TaskError(
                f"'{name}' is no score of single examples of '{self.task}'{closest(name, self.per_example) or '.'} "
                f"There are: {known}"
            )
        return self.per_example[name]

    @property
    def reference(self) -> dict[str, object]:
        """Floor, ceiling and number of examples of the primary figure, as plain data."""
        return {
            "floor": None if self.floor is None else self.floor.value,
            "floor_strategy": "" if self.floor is None else self.floor.strategy,
            "ceiling": self.ceiling,
            "num_documents": len(self.ids),
            "num_clusters": self.num_clusters,
        }

    def record(self) -> dict[str, object]:
        """Return the figures as plain data, without the scores of single examples."""
        record: dict[str, object] = {"task": self.task, "primary": self.primary, **self.figures}
        if self.collapse is not None:
            record["collapse"] = self.collapse.record()
        if self.missing:
            record["missing"] = list(self.missing)
        record["reference"] = self.reference
        return record


def compute_shares(parts: ArrayLike, total: float) -> NDArray[np.float64]:
    """Return each example's part of a ratio sum(parts) / total, scaled so that their mean is that ratio."""
    values = np.asarray(parts, dtype=np.float64)
    return values * (len(values) / total)


def find_clusters(examples: Sequence[Any], prefix: str = "") -> list[str] | None:
    """Return the cluster of each example, or its id after a prefix; None if no two examples share a cluster."""
    clusters = [f"{prefix}{one.id}" if one.cluster is None else one.cluster for one in examples]
    return clusters if len(set(clusters)) < len(clusters) else None
