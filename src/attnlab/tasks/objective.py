"""How every task calls a model: its inputs, evaluation without gradients, and the terms of the loss."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.errors import TaskError

from .batch import IGNORED, Batch


class NotFiniteError(TaskError):
    """A model whose outputs are NaN or infinite: training diverged."""


def forward(model: nn.Module, batch: Mapping[str, Tensor], **more: Any) -> Any:
    """Run a model on those inputs of a batch that it accepts, and return its output."""
    device = get_device(model)
    names = ["input_ids", "attention_mask"]
    # GPT-2 would look token types up among its word embeddings, and RoBERTa has a single type.
    if "token_type_ids" in batch and getattr(getattr(model, "config", None), "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    return model(**{name: batch[name].to(device) for name in names if name in batch}, **more)


def get_device(model: nn.Module) -> torch.device:
    """Return the device of a model's first parameter."""
    return next(model.parameters()).device


def compute_logits(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Return a model's logits; raise an error if the model has no head that computes them."""
    output = forward(model, batch)
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise TaskError(
            f"{type(model).__name__} gives no logits, only {', '.join(output)}; build it with the head the task needs"
        )
    return logits


def add_penalty(model: nn.Module, loss: Tensor) -> Tensor:
    """Add the penalty of an installed mechanism to the loss while training."""
    if not model.training:
        return loss
    # Imported here because it loads transformers, which scoring a file does not need.
    from attnlab.install import mechanism_of, penalty

    if mechanism_of(model) is None:
        return loss
    term = penalty(model)
    return loss if term is None else loss + term.to(loss.device)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off; restore the model's mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def compute_token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return −log p of every label in fp64, [batch, length], and 0 where there is no label."""
    labels = labels.to(logits.device)
    losses = F.cross_entropy(logits.double().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return losses.cpu()


def check_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield every batch; raise an error if one does not know the features it was made of."""
    for batch in batches:
        if not getattr(batch, "features", ()):
            raise TaskError("a prediction needs batches from task.collate, which know their examples")
        yield batch


def check_finite(values: Tensor, keys: Sequence[str]) -> None:
    """Raise an error that names the first example with NaN or infinity; values are [example, …]."""
    is_wrong = ~values.isfinite().flatten(1).all(1) if values.dim() > 1 else ~values.isfinite()
    if bool(is_wrong.any()):
        first = int(is_wrong.nonzero()[0])
        raise NotFiniteError(
            f"the model answers example '{keys[first]}' with NaN or infinity, one of {int(is_wrong.sum())} in this "
            "batch; it diverged, so look at its training loss"
        )
