"""What one run has before it, by counting: parameters, operations, updates, tokens, evaluations, checkpoints.

Operations of an update are 6·(W·t + H·l) + 3·A: W numbers in the matrices that each of t tokens is multiplied with, H
in the vocabulary's head, which is asked at the l labelled tokens alone, and A what the mechanism's kernels count for a
forward pass over all layers (`kernels/cost.py`). Of the 6, 2 are the pass forward, 2 the gradient of what came in and 2
that of the weights, and the 3 are alike: a matrix that does not train has not the last 2, and what is below a head that
trains alone passes forward only. Rows of a table that are looked up are no product and count nothing; nor does padding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.install import attention_layers, set_progress
from attnlab.kernels.call import Call, Request
from attnlab.kernels.choose import choose
from attnlab.kernels.cost import estimate
from attnlab.kernels.visibility import Visibility, as_mask
from attnlab.tasks.objective import forward
from attnlab.training import Job, count_parameters, late_step
from attnlab.training.build import LANGUAGE_HEADS
from attnlab.training.tuning.parts import Part, parameters_by_part
from attnlab.training.tuning.state import trained_state
from attnlab.training.update import num_tokens

MOMENTS: Mapping[str, int] = {"adamw": 2, "adam": 2, "sgd": 1}
"""Numbers that an optimizer remembers of each weight it trains."""
LEARNED_ROWS: tuple[Part, ...] = ("prompt", "prefix")
"""Parts that stand beside the tokens, and multiply none."""
BOTH_WAYS = 3
"""What an update costs in forward passes: a pass forward, and the gradients of both factors of each product."""


@dataclass(frozen=True)
class SegmentWork:
    """A part of a run with one batch size and length."""

    num_steps: int
    tokens: float
    """Of an update, on average."""
    operations: float
    """Of an update."""


@dataclass(frozen=True)
class Workload:
    """What one run has before it."""

    num_parameters: int
    num_trained: int
    segments: tuple[SegmentWork, ...]
    num_evaluations: int
    num_dev_batches: int
    num_checkpoints: int
    state_bytes: int
    """Weights, gradients, and what the optimizer remembers."""
    checkpoint_bytes: int
    num_kept: int
    """Checkpoints that a run leaves: the last, the one before it, and the best."""

    @property
    def num_steps(self) -> int:
        """How many updates the run has."""
        return sum(segment.num_steps for segment in self.segments)

    @property
    def num_tokens(self) -> float:
        """How many tokens it trains on, on average."""
        return sum(segment.num_steps * segment.tokens for segment in self.segments)

    @property
    def operations(self) -> float:
        """The operations of all its updates."""
        return sum(segment.num_steps * segment.operations for segment in self.segments)

    @property
    def kept_bytes(self) -> int:
        """What it leaves on the disk."""
        return self.num_kept * self.checkpoint_bytes

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Workload:
        """Read what `record` gave."""
        return cls(**{**record, "segments": tuple(SegmentWork(**segment) for segment in record["segments"])})


class Products(NamedTuple):
    """Operations of an update: for each token, for each labelled one, and how many times those of attention forward."""

    per_token: float
    per_label: float
    attention: int


def count_workload(job: Job) -> Workload:
    """Count what a run has before it; the model passes one row forward, so that its layers say what they attend to."""
    counts = count_parameters(job.model)
    steps, every = job.num_steps, job.settings.evaluate_every
    regular = {steps, *range(every, steps + 1, every)} if every is not None else {steps}
    regular = regular if job.dev is not None else set()
    looks = regular | ({late_step(steps)} if job.dev is not None else set())
    kept = regular | {steps, *range(job.settings.checkpoint_every, steps + 1, job.settings.checkpoint_every)}
    saved = sum(tensor.numel() * tensor.element_size() for tensor in trained_state(job.model).values())
    moments = 4 * counts.num_trained * MOMENTS[job.settings.optimizer.name]
    return Workload(
        counts.num_total, counts.num_trained, tuple(_count_segment(job, number) for number in range(len(job.streams))),
        len(looks), 0 if job.dev is None else -(-len(job.dev.features) // job.dev.batch), len(kept),
        4 * counts.num_total + 4 * counts.num_trained + moments, saved + moments,
        min(2 + (len(regular) > 1), len(kept)),
    )  # fmt: skip


def _count_segment(job: Job, number: int) -> SegmentWork:
    """Count one segment of a run."""
    stream = job.streams[number]
    rows = stream.arrangement.rows(0, 0)
    batch = stream.make(rows, 0)
    tokens = len(rows) * stream.mean_length
    labels = tokens * job.task.count(batch) / max(1, num_tokens(batch))
    products = count_products(job.model, has_language_head=job.task.head in LANGUAGE_HEADS)
    longer = round(stream.mean_length) - batch["input_ids"].shape[1]
    attention = 0.0
    for request in _list_requests(job.model, {name: tensor[:1] for name, tensor in batch.items()}):
        typical = dataclasses.replace(
            request, batch=len(rows), num_queries=request.num_queries + longer, num_keys=request.num_keys + longer
        )
        attention += estimate(typical, choose(typical)[0].NAME).operations
    operations = products.per_token * tokens + products.per_label * labels + products.attention * attention
    return SegmentWork(job.steps_of_segments[number], tokens, operations)


def count_products(model: Any, *, has_language_head: bool) -> Products:
    """Count the operations that matrices cost a token, and a vocabulary's head a labelled one."""
    output = model.get_output_embeddings() if has_language_head else None
    head = id(output.weight) if output is not None else None
    looked_up = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)} - {head}
    parts = list(parameters_by_part(model))
    is_passed_back = any(one.requires_grad and part != "head" for _, one, part in parts)
    per_token = per_label = 0.0
    for _, parameter, part in parts:
        if parameter.dim() < 2 or id(parameter) in looked_up or part in LEARNED_ROWS:
            continue
        has_gradient = is_passed_back or part == "head"
        own = 2.0 * parameter.numel() * (1 + has_gradient + parameter.requires_grad)
        if id(parameter) == head:
            per_label += own
        else:
            per_token += own
    return Products(per_token, per_label, BOTH_WAYS if is_passed_back else 1)


def _list_requests(model: Any, batch: Mapping[str, Tensor]) -> list[Request]:
    """List what the layers of a model ask of the kernels when it passes a batch, dropout included."""
    found: list[Request] = []

    def note(layer: Any, given: tuple[Any, ...]) -> None:
        q, k, v, rule, scale, dropout, _ = given
        shape = (*q.shape[:3], k.shape[2])
        sight = Visibility(q.shape[2], k.shape[2], rule.causal, as_mask(rule.mask, shape), q.device)
        found.append(Call(layer.at_scale(scale), q, k, v, {}, sight, dropout).request)

    hooks = [layer.register_forward_pre_hook(note) for _, _, layer in attention_layers(model)]
    try:
        set_progress(model, 0.0)  # as the first update will, for phases that change while training
        with torch.no_grad():
            forward(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return found
