"""A language model asked only where there is a label: its vocabulary head is most of its work, mostly idle.

Three ways give the same loss. `chunked` hands the head the labelled positions alone and never holds all logits,
`labelled` does the first of these, `whole` neither. A model takes a way that was compared with `whole` on that model.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attnlab.errors import AttnlabWarning, TaskError

from .batch import IGNORED
from .crossentropy import losses_and_hits, summed_loss
from .objective import asking, forward, logits_of

Way = Literal["chunked", "labelled", "whole"]

PROVEN: weakref.WeakKeyDictionary[nn.Module, Way] = weakref.WeakKeyDictionary()
"""The way each model takes, found out when it is first asked."""
PROBE_ROWS = 2
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
"""How far logits computed for fewer positions may be off, of the largest: other shapes round differently."""


def mean_loss(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor, way: Way | None = None) -> Tensor:
    """Return the mean of −log p over the labels [b, n] that are not ignored; no label at all is an error, not NaN."""
    is_labelled = labels != IGNORED
    count = count_labels(labels)
    if not count:
        raise TaskError("no position of this batch has a label, so it has no loss; use longer sequences or more rows")
    states, head = head_input(model, batch, is_labelled, way or way_of(model, batch, labels))
    wanted = labels[is_labelled].to(states.device)
    if head is not None:
        return summed_loss(states, head.weight, head.bias, wanted) / count
    return torch.nn.functional.cross_entropy(states.float(), wanted)


def label_losses(
    model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor, way: Way | None = None
) -> tuple[Tensor, Tensor]:
    """Return −log p of every label in fp64, 0 where there is none, and whether it is the likeliest token: [b, n]."""
    is_labelled = labels.cpu() != IGNORED
    nats = torch.zeros(labels.shape, dtype=torch.float64)
    is_right = torch.zeros(labels.shape, dtype=torch.bool)
    if not bool(is_labelled.any()):
        return nats, is_right
    with asking(model):
        states, head = head_input(model, batch, is_labelled, way or way_of(model, batch, labels))
        wanted = labels[is_labelled].to(states.device)
        if head is None:
            own = torch.nn.functional.cross_entropy(states.double(), wanted, reduction="none")
            hits = states.argmax(-1) == wanted
        else:
            own, hits = losses_and_hits(states, head.weight, head.bias, wanted)
    nats[is_labelled], is_right[is_labelled] = own.cpu(), hits.cpu()
    return nats, is_right


def head_input(
    model: nn.Module, batch: Mapping[str, Tensor], is_labelled: Tensor, way: Way
) -> tuple[Tensor, nn.Linear | None]:
    """Return [n, d] states of labelled positions with the head still to be applied, or their logits without one."""
    if way == "whole":
        return logits_of(model, batch)[is_labelled.to(device_of(model))], None
    with keeping(model, is_labelled):
        if way == "labelled":
            return logits_of(model, batch)[0], None
        head: Any = head_of(model)
        with stopped_at(head) as seen:
            forward(model, batch)
    return seen[0][0], head


def way_of(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor) -> Way:
    """Return the least costly way that gives a model's own logits; one that is not the least is said once."""
    if model not in PROVEN:
        found = found_way(model, batch, labels)
        if found is None:
            return "whole"
        PROVEN[model] = found
        if found != "chunked":
            asked = "labelled positions" if found == "labelled" else "all positions"
            warnings.warn(
                f"the logits of {type(model).__name__} are not its body's output through one linear layer and no more; "
                f"its loss is computed from the logits of {asked} at once: the same figure, but slower",
                AttnlabWarning,
                stacklevel=3,
            )
    return PROVEN[model]


def found_way(model: nn.Module, batch: Mapping[str, Tensor], labels: Tensor) -> Way | None:
    """Try the ways on a few rows of a batch; None where the logits are no numbers, which proves nothing."""
    rows = (labels != IGNORED).any(1).nonzero()[:PROBE_ROWS, 0]
    few = {name: tensor[rows] for name, tensor in batch.items()}
    is_labelled = labels[rows] != IGNORED
    if body_of(model) is model:
        return "whole"
    with asking(model):
        whole = logits_of(model, few)[is_labelled.to(device_of(model))]
        try:
            fewer, _ = head_input(model, few, is_labelled, "labelled")
        except SelectionError:
            return "whole"
        if not bool(whole.isfinite().all()):
            return None
        bound = TOLERANCE.get(whole.dtype, 3e-2) * whole.abs().max()
        if fewer.shape != whole.shape or not bool((fewer - whole).abs().max() <= bound):
            return "whole"
        return "chunked" if ends_in_head(model, few) else "labelled"


def ends_in_head(model: nn.Module, batch: Mapping[str, Tensor]) -> bool:
    """Tell whether the logits are, to the bit, what one linear layer gives: nothing scales or caps them after it."""
    head = head_of(model)
    if type(head) is not nn.Linear or head._forward_hooks or head._forward_pre_hooks or "forward" in vars(head):
        return False
    given: list[Tensor] = []
    handle = head.register_forward_hook(lambda module, args, output: given.append(output))
    try:
        logits = logits_of(model, batch)
    finally:
        handle.remove()
    return len(given) == 1 and given[0].shape == logits.shape and torch.equal(given[0].to(logits.dtype), logits)


class SelectionError(Exception):
    """A body whose output has no row for each position of its input."""


@contextmanager
def keeping(model: nn.Module, is_kept: Tensor) -> Iterator[None]:
    """Let what follows the body see the kept positions [b, n] alone, as one sequence [1, kept, d]."""

    def select(module: nn.Module, args: Any, output: Any) -> Any:
        hidden = output[0]
        if hidden.shape[:2] != is_kept.shape:
            raise SelectionError
        kept = hidden[is_kept.to(hidden.device)][None]
        if isinstance(output, tuple):
            return (kept, *output[1:])
        output[next(iter(output))] = kept
        return output

    handle = body_of(model).register_forward_hook(select)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def stopped_at(head: nn.Linear) -> Iterator[list[Tensor]]:
    """Let a head keep what it is given, and answer with no logits at all."""
    seen: list[Tensor] = []

    def keep(states: Tensor) -> Tensor:
        seen.append(states)
        return states.new_zeros(*states.shape[:-2], 0, head.out_features)

    vars(head)["forward"] = keep
    try:
        yield seen
    finally:
        del vars(head)["forward"]


def body_of(model: Any) -> nn.Module:
    """Return the part of a model below its head; the model itself where there is no such part."""
    body: nn.Module = getattr(model, "base_model", model)
    return body


def head_of(model: Any) -> object:
    """Return the layer that makes logits, as a model names it."""
    return model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None


def count_labels(labels: Tensor) -> int:
    """Return how many positions have a label."""
    return int((labels != IGNORED).sum())


def device_of(model: nn.Module) -> torch.device:
    """Return where a model is."""
    return next(model.parameters()).device
