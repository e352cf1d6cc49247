"""Features and the batches made of them: small arrays, then padded tensors that remember where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from attnlab.errors import TaskError

IGNORED = -100
"""The label of a position that no loss is taken of, as everywhere in PyTorch."""

Tokens = NDArray[np.int32]
Target = int | float | Tokens


@dataclass(frozen=True)
class BatchPadding:
    """What fills a batch behind shorter sequences."""

    token: int
    token_type: int = 0

    @classmethod
    def of(cls, tokenizer: Any) -> BatchPadding:
        """Return a tokenizer's padding; one without a pad token, such as GPT-2's, pads with its end token.

        Either is left out by the attention mask, so the choice changes no result.
        """
        for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
            if token is not None:
                return cls(int(token), int(getattr(tokenizer, "pad_token_type_id", 0) or 0))
        raise TaskError(
            f"{type(tokenizer).__name__} has neither a pad token nor an end token to fill a batch with; "
            "set tokenizer.pad_token"
        )


@dataclass(frozen=True, slots=True)
class Feature:
    """One sequence for a model: the example it is of, its own number, its ids, and what should come out.

    A training set has tens of millions of tokens, so they are arrays, and masks are left to the batch.
    """

    key: str
    number: int
    inputs: Mapping[str, Tokens]
    targets: Mapping[str, Target]
    padding: BatchPadding

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])


def as_tokens(ids: ArrayLike) -> Tokens:
    """Return ids, or labels, as a feature keeps them."""
    return np.array(ids, dtype=np.int32)


class Batch(dict[str, Tensor]):
    """Tensors by name, with the features they were made of, row by row."""

    def __init__(self, tensors: Mapping[str, Tensor], features: Sequence[Feature] = ()) -> None:
        super().__init__(tensors)
        self.features = tuple(features)

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch on a device."""
        return Batch({name: tensor.to(device) for name, tensor in self.items()}, self.features)


def pad(features: Sequence[Feature]) -> Batch:
    """Make one batch of features, each padded on the right to the longest."""
    if not features:
        raise TaskError("a batch needs at least one feature; this one has none")
    padding = features[0].padding
    fill = {"input_ids": padding.token, "token_type_ids": padding.token_type}
    tensors = {
        name: as_rectangle([feature.inputs[name] for feature in features], fill[name]) for name in features[0].inputs
    }
    tensors["attention_mask"] = as_rectangle([np.ones(len(feature), np.int32) for feature in features], 0)
    for name in features[0].targets:
        tensors[name] = as_targets([feature.targets[name] for feature in features])
    return Batch(tensors, features)


def as_targets(targets: Sequence[Any]) -> Tensor:
    """Return numbers as a vector, and sequences padded with the label that is ignored."""
    return torch.tensor(targets) if isinstance(targets[0], int | float) else as_rectangle(targets, IGNORED)


def as_rectangle(rows: Sequence[Tokens], fill: int) -> Tensor:
    """Return rows of different lengths as one tensor, filled up on the right."""
    filled = np.full((len(rows), max(len(row) for row in rows)), fill, dtype=np.int64)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return torch.from_numpy(filled)
