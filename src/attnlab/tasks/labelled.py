"""The loss of a language model at labelled positions only, since its vocabulary head is most of its work.

Three ways give the same loss. `whole` computes the logits of all positions, `labelled` those of labelled positions,
`chunked` the same without ever holding all of them. A model uses the cheapest way that matches `whole` on that model.
"""

import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.errors import AttnlabWarning, TaskError

from .batch import IGNORED, PaddedTask
from .crossentropy import compute_losses_and_hits, compute_summed_loss
from .objective import add_penalty, compute_logits, evaluation_mode, forward, get_device

Way = Literal["chunked", "labelled", "whole"]

PROVEN_WAYS: weakref.WeakKeyDictionary[nn.Module, Way] = weakref.WeakKeyDictionary()
"""The way each model uses, determined at its first call."""
PROBE_ROWS = 2
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
"""Allowed error of logits computed for fewer positions, relative to the largest: other shapes round differently."""


class LabelledTask(PaddedTask):
    """A task whose loss is the mean over the labelled positions of a batch."""

    def get_labels(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the target of the logits at each position, `IGNORED` where there is none."""
        return batch["labels"]

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss over the labelled positions."""
        return add_penalty(model, compute_mean_loss(model, batch, self.get_labels(batch)))

    def count(self, batch: Mapping[str, Tensor]) -> int:
        """Return how many positions are labelled."""
        return int((self.get_labels(batch) != IGNORED).sum())


def compute_mean_loss(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor, way: Way | None = None) -> Tensor:
    """Return the mean of −log p over the labels [b, n] that are not ignored; no label at all is an error, not NaN."""
    is_labelled = labels != IGNORED
    count = int(is_labelled.sum())
    if not count:
        raise TaskError("no position of this batch has a label, so it has no loss; use longer sequences or more rows")
    states, head = compute_head_input(model, batch, is_labelled, way or choose_way(model, batch, labels))
    targets = labels[is_labelled].to(states.device)
    if head is not None:
        return compute_summed_loss(states, head.weight, head.bias, targets) / count
    return F.cross_entropy(states.float(), targets)


def compute_label_losses(
    model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor, way: Way | None = None
) -> tuple[Tensor, Tensor]:
    """Return −log p of every label in fp64, 0 where there is none, and whether it is the likeliest token: [b, n]."""
    is_labelled = labels.cpu() != IGNORED
    nats = torch.zeros(labels.shape, dtype=torch.float64)
    is_right = torch.zeros(labels.shape, dtype=torch.bool)
    if not bool(is_labelled.any()):
        return nats, is_right
    with evaluation_mode(model):
        states, head = compute_head_input(model, batch, is_labelled, way or choose_way(model, batch, labels))
        targets = labels[is_labelled].to(states.device)
        if head is None:
            losses = F.cross_entropy(states.double(), targets, reduction="none")
            hits = states.argmax(-1) == targets
        else:
            losses, hits = compute_losses_and_hits(states, head.weight, head.bias, targets)
    nats[is_labelled], is_right[is_labelled] = losses.cpu(), hits.cpu()
    return nats, is_right


def compute_head_input(
    model: nn.Module, batch: Mapping[str, Tensor], is_labelled: Tensor, way: Way
) -> tuple[Tensor, nn.Linear | None]:
    """Return [n, d] states of labelled positions and the head to apply to them, or their logits and None."""
    if way == "whole":
        return compute_logits(model, batch)[is_labelled.to(get_device(model))], None
    with _select_positions(model, is_labelled):
        if way == "labelled":
            return compute_logits(model, batch)[0], None
        head: Any = _get_head(model)
        with _capture_input(head) as inputs:
            forward(model, batch)
    return inputs[0][0], head


def choose_way(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor) -> Way:
    """Return the cheapest way that reproduces a model's own logits; warn once if it is not the cheapest of all."""
    if model not in PROVEN_WAYS:
        way = _find_way(model, batch, labels)
        if way is None:
            return "whole"
        PROVEN_WAYS[model] = way
        if way != "chunked":
            positions = "labelled positions" if way == "labelled" else "all positions"
            warnings.warn(
                f"the logits of {type(model).__name__} are not its body's output through one linear layer and no more; "
                f"its loss is computed from the logits of {positions} at once: the same loss, but slower",
                AttnlabWarning,
                stacklevel=3,
            )
    return PROVEN_WAYS[model]


def _find_way(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor) -> Way | None:
    """Try the ways on a few rows of a batch; return None if the logits are not finite, which proves nothing."""
    if _get_body(model) is model:
        return "whole"
    rows = (labels != IGNORED).any(1).nonzero()[:PROBE_ROWS, 0]
    few = {name: tensor[rows] for name, tensor in batch.items()}
    is_labelled = labels[rows] != IGNORED
    with evaluation_mode(model):
        whole, _ = compute_head_input(model, few, is_labelled, "whole")
        try:
            selected, _ = compute_head_input(model, few, is_labelled, "labelled")
        except _SelectionError:
            return "whole"
        if not bool(whole.isfinite().all()):
            return None
        bound = TOLERANCE.get(whole.dtype, 3e-2) * whole.abs().max()
        if selected.shape != whole.shape or not bool((selected - whole).abs().max() <= bound):
            return "whole"
        return "chunked" if _ends_in_head(model, few) else "labelled"


def _ends_in_head(model: nn.Module, batch: Mapping[str, Tensor]) -> bool:
    """Tell whether the logits are, to the bit, one linear layer of the head's input: no scale, cap or hook after it."""
    head = _get_head(model)
    if type(head) is not nn.Linear or "forward" in vars(head):
        return False
    linear: list[Tensor] = []
    handle = head.register_forward_hook(
        lambda module, args, output: linear.append(F.linear(args[0], head.weight, head.bias))
    )
    try:
        logits = compute_logits(model, batch)
    finally:
        handle.remove()
    return len(linear) == 1 and linear[0].shape == logits.shape and torch.equal(linear[0].to(logits.dtype), logits)


class _SelectionError(Exception):
    """A body whose output has no row for each position of its input."""


@contextmanager
def _select_positions(model: nn.Module, is_kept: Tensor) -> Iterator[None]:
    """Pass only the kept positions [b, n] of the body's output on, as one sequence [1, kept, d]."""

    def select(module: nn.Module, args: Any, output: Any) -> Any:
        hidden = output[0]
        if hidden.shape[:2] != is_kept.shape:
            raise _SelectionError
        kept = hidden[is_kept.to(hidden.device)][None]
        if isinstance(output, tuple):
            return (kept, *output[1:])
        output[next(iter(output))] = kept
        return output

    handle = _get_body(model).register_forward_hook(select)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _capture_input(head: nn.Linear) -> Iterator[list[Tensor]]:
    """Make a head store its input and return logits of zero positions."""
    inputs: list[Tensor] = []

    def store(states: Tensor) -> Tensor:
        inputs.append(states)
        return states.new_zeros(*states.shape[:-2], 0, head.out_features)

    vars(head)["forward"] = store
    try:
        yield inputs
    finally:
        del vars(head)["forward"]


def _get_body(model: Any) -> Any:
    return getattr(model, "base_model", model)


def _get_head(model: Any) -> object:
    return model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
