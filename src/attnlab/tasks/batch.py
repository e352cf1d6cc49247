"""Features, one sequence each, and the padded batches made of them, which keep their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from attnlab.errors import TaskError

IGNORED = -100
"""The label of a position without a loss, as in PyTorch."""

Tokens = NDArray[np.int32]
Target = int | float | Tokens


@dataclass(frozen=True)
class BatchPadding:
    """The token and token type that pad shorter sequences."""

    token: int
    token_type: int = 0

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Return a tokenizer's padding, or its end token if it has no pad token; the attention mask hides either."""
        for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
            if token is not None:
                return cls(int(token), int(getattr(tokenizer, "pad_token_type_id", 0) or 0))
        raise TaskError(
            f"{type(tokenizer).__name__} has neither a pad token nor an end token to fill a batch with; "
            "set tokenizer.pad_token"
        )


@dataclass(frozen=True, slots=True)
class Feature:
    """One sequence for a model: the id of its example, its own number, its tokens and its targets.

    A training set has tens of millions of tokens, so they are arrays, and masks are made with the batch.
    """

    key: str
    number: int
    inputs: Mapping[str, Tokens]
    targets: Mapping[str, Target]
    padding: BatchPadding

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])


def as_tokens(ids: ArrayLike) -> Tokens:
    """Return ids or labels in the dtype of features."""
    return np.array(ids, dtype=np.int32)


class Batch(dict[str, Tensor]):
    """Tensors by name, with the feature of each row."""

    def __init__(self, tensors: Mapping[str, Tensor], features: Sequence[Feature] = ()) -> None:
        super().__init__(tensors)
        self.features = tuple(features)

    def to(self, device: torch.device | str) -> Self:
        """Return the same batch on a device."""
        return type(self)({name: tensor.to(device) for name, tensor in self.items()}, self.features)


class PaddedTask:
    """A task whose batches are padded sequences, and whose loss is a mean over the sequences."""

    def collate(self, features: Sequence[Feature], *, seed: int = 0, epoch: int = 0) -> Batch:
        """Make a batch of sequences."""
        return pad(features)

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many sequences there are."""
        return len(batch["input_ids"])


def pad(features: Sequence[Feature]) -> Batch:
    """Make one batch of features, each padded on the right to the longest."""
    if not features:
        raise TaskError("a batch needs at least one feature; this one has none")
    padding = features[0].padding
    fill = {"input_ids": padding.token, "token_type_ids": padding.token_type}
    rows = {name: [feature.inputs[name] for feature in features] for name in features[0].inputs}
    tensors = {name: torch.from_numpy(fill_rows(rows[name], fill[name])) for name in rows}
    tensors["attention_mask"] = torch.from_numpy(fill_rows([np.ones(len(one), np.int32) for one in features], 0))
    for name in features[0].targets:
        targets: list[Any] = [feature.targets[name] for feature in features]
        is_number = isinstance(targets[0], int | float)
        tensors[name] = torch.tensor(targets) if is_number else torch.from_numpy(fill_rows(targets, IGNORED))
    return Batch(tensors, features)


def fill_rows(rows: Sequence[Sequence[int] | Tokens], fill: int) -> NDArray[np.int64]:
    """Return rows of different lengths as one array, filled on the right."""
    filled = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return filled
