"""The loss of a language model that is fed nothing but the past: for token t, a forward pass over tokens 0 … t−1.

A whole line fed at once trusts the mask. A mechanism that leaks looks brilliant there and fails at generating; here
it cannot, since what it must not see is not there. Prefixes of one length are one batch, so that nothing is padded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import nn

from ..batch import Batch, Feature
from ..objective import asking, check_finite, logits_of, token_losses
from .line import LineLoss


def honest_losses(model: nn.Module, batches: Iterable[Batch]) -> dict[str, LineLoss]:
    """Return each line's loss, every token predicted from the tokens before it and no others."""
    losses: dict[str, LineLoss] = {}
    with asking(model):
        for batch in batches:
            for feature, loss in zip(batch.features, _of_features(model, batch.features), strict=True):
                losses[feature.key] = losses.get(feature.key, LineLoss()) + loss
    return losses


def _of_features(model: nn.Module, features: Sequence[Feature]) -> list[LineLoss]:
    rows = [feature.inputs["input_ids"] for feature in features]
    losses = [LineLoss() for _ in rows]
    for length in range(1, max(map(len, rows))):
        going = [number for number, row in enumerate(rows) if len(row) > length]
        past = torch.from_numpy(np.stack([rows[number][:length] for number in going])).long()
        wanted = torch.tensor([[int(rows[number][length])] for number in going])
        logits = logits_of(model, {"input_ids": past, "attention_mask": torch.ones_like(past)})[:, -1:]
        nats = token_losses(logits, wanted)
        check_finite(nats, [features[number].key for number in going])
        is_right = logits.argmax(-1).cpu() == wanted
        for at, number in enumerate(going):
            losses[number] += LineLoss(float(nats[at]), 1, int(is_right[at]))
    return losses
