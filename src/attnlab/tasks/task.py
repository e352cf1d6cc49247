"""What a task is: one question asked of a model, from examples to a score. Training and studies know no more of it.

examples(source, split) → features(examples, tokenizer) → collate(features) → loss(model, batch) while training,
predict(model, batches) → score(predictions, examples) afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from .batch import Batch, Feature
from .scores import Reference, Scores

E = TypeVar("E")
P = TypeVar("P")


class Task(Protocol[E, P]):
    """A question with examples of one type E, each answered by a prediction of one type P."""

    @property
    def name(self) -> str:
        """The name it is looked up by."""
        ...

    @property
    def head(self) -> str:
        """The transformers class that gives a model the head it needs, such as AutoModelForQuestionAnswering."""
        ...

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """What the model's config must say for this head, such as num_labels."""
        ...

    @property
    def primary(self) -> str:
        """The figure that decides."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether more of it is better."""
        ...

    @property
    def ceiling(self) -> float | None:
        """The best value that the deciding figure can have; None where there is no known one."""
        ...

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the best of the trivial strategies on `dev` (its `examples` and `features`), in the figure's unit.

        What a strategy needs to know of a language it takes from the features that are trained on.
        """
        ...

    def examples(self, source: Any, split: str | None = None) -> list[E]:
        """Read the examples of a source: its name, as `attnlab.data` takes it, or one opened already."""
        ...

    def features(self, examples: Sequence[E], tokenizer: Any) -> list[Feature]:
        """Make sequences of token ids of examples, one or several each."""
        ...

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch; what is drawn at random (masking) depends on seed, epoch and the feature's number alone."""
        ...

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the loss to train with, a mechanism's penalty included."""
        ...

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many things the loss of a batch is the mean over, by which parts of a batch are weighed."""
        ...

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, P]:
        """Return the model's answer for every example in the batches, by the example's id."""
        ...

    def score(self, predictions: Mapping[str, P], examples: Sequence[E]) -> Scores:
        """Compare predictions with examples; one without a prediction is an error unless an official script differs."""
        ...
