"""The interface of a task: one question asked of a model, from examples to scores. Training and studies use only this.

examples(source, split) → features(examples, tokenizer) → collate(features) → loss(model, batch) while training,
predict(model, batches) → score(predictions, examples) afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from .batch import Batch, Feature
from .scores import Reference, Scores

E = TypeVar("E")
P = TypeVar("P")


class Task(Protocol[E, P]):
    """A question with examples of type E, each answered by a prediction of type P."""

    @property
    def name(self) -> str:
        """The name in the catalog."""

    @property
    def head(self) -> str:
        """The transformers class with the head it needs, such as AutoModelForQuestionAnswering."""

    @property
    def head_settings(self) -> Mapping[str, Any]:
        """Settings of the model's config that this head needs, such as num_labels."""

    @property
    def primary(self) -> str:
        """The figure that decides."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher primary figure is better."""

    @property
    def ceiling(self) -> float | None:
        """The best possible value of the primary figure; None if it is not known."""

    def floor(self, dev: Any, train_features: Iterable[Feature] = ()) -> Reference | None:
        """Return the primary figure of the best trivial strategy on `dev` (its `examples` and `features`).

        Strategies that need statistics of the language take them from the training features.
        """

    def examples(self, source: Any, split: str | None = None) -> list[E]:
        """Read the examples of a source: its name, as `attnlab.data` takes it, or an open one."""

    def features(self, examples: Sequence[E], tokenizer: Any) -> list[Feature]:
        """Encode examples into sequences of token ids, one or several each."""

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch; random draws (masking) depend on seed, epoch and the feature's number alone."""

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the training loss, including a mechanism's penalty."""

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return the number of terms that the loss of a batch averages, the weight of a part of a batch."""

    def predict(self, model: nn.Module, batches: Iterable[Batch]) -> dict[str, P]:
        """Return the model's prediction for every example in the batches, by the example's id."""

    def score(self, predictions: Mapping[str, P], examples: Sequence[E]) -> Scores:
        """Compare predictions with examples; a missing prediction is an error unless an official script differs."""
