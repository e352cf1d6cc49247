"""The workload of a run, by counting: parameters, operations, updates, tokens, evaluations, checkpoints.

Operations of an update are 6·(W·t + H·l) + 3·A: W numbers in the matrices that each of t tokens is multiplied with, H
in the vocabulary's head, which is computed at the l labelled tokens only, and A operations of attention in a forward
pass over all layers (`kernels/cost.py`). Of the 6, 2 are the forward pass, 2 the gradient of the input and 2 that of
the weights, and likewise of the 3: a frozen matrix has no gradient, and if only the head is trained, the layers below
it have the forward pass only. Embedding lookups and padding cost nothing. Muon adds its products of each hidden matrix
once per update; of other optimizers nothing is counted.
"""

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.install import attention_layers, set_progress
from attnlab.install.inspection import list_parameters_without_products
from attnlab.install.weight_parts import weight_parts
from attnlab.kernels import linear
from attnlab.kernels.call import Call, Request
from attnlab.kernels.choose import choose, list_kernels
from attnlab.kernels.cost import estimate
from attnlab.kernels.fold import adapt_request
from attnlab.kernels.visibility import Visibility, as_mask
from attnlab.tasks.objective import forward
from attnlab.training import Job, count_parameters, late_step
from attnlab.training.job.weights import LANGUAGE_HEADS
from attnlab.training.loop.blocks import find_hidden_matrices
from attnlab.training.loop.muon import count_operations
from attnlab.training.loop.update import count_tokens
from attnlab.training.record.files import write_json
from attnlab.training.record.folder import WORKLOAD
from attnlab.training.tuning.parts import Part, parameters_by_part
from attnlab.training.tuning.state import get_trained_state

MOMENTS: Mapping[str, int] = {"adamw": 2, "adam": 2, "sgd": 1, "muon": 2}
"""Numbers that an optimizer keeps for each weight; Muon keeps one for each of a hidden matrix."""
LEARNED_ROWS: tuple[Part, ...] = ("prompt", "prefix")
"""Parts that are prepended to the tokens and are not multiplied with them."""
PASSES = 3
"""The cost of an update in forward passes: the pass itself, and the gradients of both factors of each product."""


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
    """What a run has to compute and to store."""

    num_parameters: int
    num_trained: int
    segments: tuple[SegmentWork, ...]
    num_evaluations: int
    num_dev_batches: int
    num_checkpoints: int
    state_bytes: int
    """Weights, gradients, and the state of the optimizer."""
    checkpoint_bytes: int
    num_kept: int
    """Checkpoints that a run keeps: the last, the one before it, and the best."""
    state: int = 0
    """Numbers that decoding keeps for a sequence of the evaluation length; 0 if the model is not causal."""

    @property
    def num_steps(self) -> int:
        """The number of updates."""
        return sum(segment.num_steps for segment in self.segments)

    @property
    def num_tokens(self) -> float:
        """The number of tokens it trains on, on average."""
        return sum(segment.num_steps * segment.tokens for segment in self.segments)

    @property
    def operations(self) -> float:
        """The operations of all its updates."""
        return sum(segment.num_steps * segment.operations for segment in self.segments)

    @property
    def kept_bytes(self) -> int:
        """The disk space of its checkpoints."""
        return self.num_kept * self.checkpoint_bytes


class Products(NamedTuple):
    """Operations of an update per token and per labelled token, and its cost in forward passes of attention."""

    per_token: float
    per_label: float
    attention: int


def note_operations(job: Job, folder: Path, say: Callable[[str], object]) -> None:
    """Write the operations of a run into its folder before it is trained, for charts of quality against cost."""
    if (folder / WORKLOAD).exists():
        return
    try:
        job.model.train()  # dropout decides which kernels are used
        write_json(folder / WORKLOAD, {"operations": count_workload(job).operations})
    except Exception as error:  # a count that fails must not cost the run its training
        say(f"its operations could not be counted ({type(error).__name__}: {error}); charts leave them out")


def count_workload(job: Job) -> Workload:
    """Count the workload of a run; one row passes through the model, to record what its layers attend to."""
    counts = count_parameters(job.model)
    steps, every = job.num_steps, job.settings.evaluate_every
    regular = set[int]() if job.dev is None else {steps, *range(every or steps, steps + 1, every or steps)}
    looks = regular if job.dev is None else regular | {late_step(steps)}
    kept = regular | {steps, *range(job.settings.checkpoint_every, steps + 1, job.settings.checkpoint_every)}
    saved = sum(tensor.numel() * tensor.element_size() for tensor in get_trained_state(job.model).values())
    hidden = sum(matrix.numel() for matrix in _find_orthogonalized(job))
    moments = 4 * (counts.num_trained * MOMENTS[job.settings.optimizer.name] - hidden)
    return Workload(
        counts.num_total, counts.num_trained, tuple(_count_segment(job, number) for number in range(len(job.streams))),
        len(looks), 0 if job.dev is None else -(-len(job.dev.features) // job.dev.batch), len(kept),
        4 * counts.num_total + 4 * counts.num_trained + moments, saved + moments,
        min(2 + (len(regular) > 1), len(kept)), count_state(job),
    )  # fmt: skip


def _count_segment(job: Job, number: int) -> SegmentWork:
    stream = job.streams[number]
    rows = stream.arrangement.rows(0, 0)
    batch = stream.make(rows, 0)
    tokens = len(rows) * stream.mean_length
    labels = tokens * job.task.count(batch) / max(1, count_tokens(batch))
    products = count_products(job.model, has_language_head=job.task.head in LANGUAGE_HEADS)
    longer = round(stream.mean_length) - batch["input_ids"].shape[1]
    attention = 0.0
    for request, _ in _list_requests(job.model, {name: tensor[:1] for name, tensor in batch.items()}):
        typical = dataclasses.replace(
            adapt_request(request), batch=len(rows), num_queries=request.num_queries + longer,
            num_keys=request.num_keys + longer,
        )  # fmt: skip
        attention += estimate(typical, choose(typical)[0].NAME).operations
    operations = products.per_token * tokens + products.per_label * labels + products.attention * attention
    operations += sum(count_operations(*matrix.shape) for matrix in _find_orthogonalized(job))
    return SegmentWork(job.steps_of_segments[number], tokens, operations)


def count_state(job: Job) -> int:
    """Count what decoding keeps in all layers: keys and values of every token, or the sums of linear attention."""
    stream = job.streams[-1]
    batch = stream.make(stream.arrangement.rows(0, 0), 0)
    length = stream.longest if job.dev is None else max(map(len, job.dev.features))
    numbers = 0
    for request, num_key_heads in _list_requests(job.model, {name: tensor[:1] for name, tensor in batch.items()}):
        if not request.causal:
            return 0
        if linear.NAME in list_kernels(dataclasses.replace(request, dropout=0.0)):
            numbers += request.num_heads * request.head_dim * request.value_dim
        else:
            numbers += num_key_heads * length * (request.head_dim + request.value_dim)
    return numbers


def _find_orthogonalized(job: Job) -> list[Tensor]:
    """Return the matrices that Muon makes the update of orthogonal, a fused one in its parts."""
    if job.settings.optimizer.name != "muon":
        return []
    hidden = find_hidden_matrices(job.model)
    return [part for name, part in weight_parts(job.model) if name.partition("[")[0] in hidden]


def count_products(model: Any, *, has_language_head: bool) -> Products:
    """Count the operations of the matrices of a model per token, and those of its language head per label."""
    output = model.get_output_embeddings() if has_language_head else None
    head = id(output.weight) if output is not None else None
    looked_up = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)} - {head}
    looked_up |= {id(parameter) for parameter in list_parameters_without_products(model)}
    parts = list(parameters_by_part(model))
    is_passed_back = any(parameter.requires_grad and part != "head" for _, parameter, part in parts)
    per_token = per_label = 0.0
    for _, parameter, part in parts:
        if parameter.dim() < 2 or id(parameter) in looked_up or part in LEARNED_ROWS:
            continue
        has_gradient = is_passed_back or part == "head"
        operations = 2.0 * parameter.numel() * (1 + has_gradient + parameter.requires_grad)
        if id(parameter) == head:
            per_label += operations
        else:
            per_token += operations
    return Products(per_token, per_label, PASSES if is_passed_back else 1)


def _list_requests(model: Any, batch: Mapping[str, Tensor]) -> list[tuple[Request, int]]:
    """List the requests of a model's layers to the kernels in a forward pass, each with its number of key heads."""
    requests: list[tuple[Request, int]] = []

    def record(layer: Any, given: tuple[Any, ...]) -> None:
        q, k, v, rule, scale, dropout, _ = given
        shape = (*q.shape[:3], k.shape[2])
        sight = Visibility(q.shape[2], k.shape[2], rule.causal, as_mask(rule.mask, shape), q.device)
        requests.append((Call(layer.at_scale(scale), q, k, v, {}, sight, dropout).request, k.shape[1]))

    with ExitStack() as hooks, torch.no_grad():
        for _, _, layer in attention_layers(model):
            hooks.enter_context(layer.register_forward_pre_hook(record))
        set_progress(model, 0.0)  # as in the first update, for stages that change during training
        forward(model, batch)
    return requests
