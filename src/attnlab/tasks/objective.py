"""A task's one way to call a model: which inputs it gets, how it is asked without training, what a loss is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.errors import TaskError

from .batch import IGNORED, Batch


class NotFiniteError(TaskError):
    """A model that answers with NaN or infinity: it diverged."""


def forward(model: nn.Module, batch: Mapping[str, Tensor], **more: Any) -> Any:
    """Run a model on the inputs of a batch that it knows, and return its output."""
    device = next(model.parameters()).device
    names = ["input_ids", "attention_mask"]
    # GPT-2 would take token types too, and look them up among its words; RoBERTa has one type only.
    if "token_type_ids" in batch and getattr(getattr(model, "config", None), "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return model(**{name: batch[name].to(device) for name in names if name in batch}, **more)


def logits_of(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Return a model's logits; a model without a head that makes them is an error."""
    output = forward(model, batch)
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise TaskError(
            f"{type(model).__name__} gives no logits, only {', '.join(output)}; build it with the head the task needs"
        )
    return logits


def with_penalty(model: nn.Module, loss: Tensor) -> Tensor:
    """Add what an installed mechanism adds to the loss while training."""
    if not model.training:
        return loss
    # Imported here because transformers comes with it, which scoring a file must not wait for.
    from attnlab.install import mechanism_of, penalty

    if mechanism_of(model) is None:
        return loss
    term = penalty(model)
    return loss if term is None else loss + term.to(loss.device)


@contextmanager
def asking(model: nn.Module) -> Iterator[None]:
    """Ask a model without training it: no dropout, no gradients; afterwards it is in the mode it was."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return −log p of every label in fp64, [batch, length], and 0 where there is none."""
    labels = labels.to(logits.device)
    losses = F.cross_entropy(logits.double().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return losses.cpu()


def answered(model: nn.Module, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Any]]:
    """Yield every batch with the model's output on it."""
    with asking(model):
        for batch in asked(batches):
            yield batch, forward(model, batch)


def asked(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield every batch; one that does not say what it is made of is an error."""
    for batch in batches:
        if not getattr(batch, "features", ()):
            raise TaskError("a prediction needs batches from task.collate, which know their examples")
        yield batch


def check_finite(values: Tensor, keys: Sequence[str]) -> None:
    """Refuse NaN and infinity, naming the first example they come from; values are [example, …]."""
    wrong = ~values.isfinite().flatten(1).all(1) if values.dim() > 1 else ~values.isfinite()
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0])
        raise NotFiniteError(
            f"the model answers example '{keys[first]}' with NaN or infinity, one of {int(wrong.sum())} in this "
            "batch; it diverged, so look at its training loss"
        )
