"""A rough idea of a study's time on this machine, from its design alone: neither its data nor a weight is needed.

A run takes START + (1 + EVALUATIONS) · Σ steps · (layers · overhead + operations / pace). Operations of an update are
6·(W·t + H·l) of its t = batch · length tokens, as in `workload.py`, without attention's own; overhead and pace are
measured on a small GPT-2. Rows are taken to be full, every arm to cost what plain attention does, products to be in
fp32, all weights to be trained, and a tokenizer that is named to have as many tokens as its architecture usually has.
`estimate.py` times real updates and is more accurate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import torch
from transformers import AutoConfig

from attnlab.kernels.measure import one_thread
from attnlab.machine import num_cores
from attnlab.tasks import load as load_task
from attnlab.training import Data, RunSpec, Segment, Start, build
from attnlab.training.build import LANGUAGE_HEADS, TRAINED
from attnlab.training.precision import choose_precision
from attnlab.training.ranks import Ranks
from attnlab.training.spec import Source
from attnlab.training.stream import Share, updates
from attnlab.training.update import Updater
from attnlab.training.weights import building, changed, config_of, head_class, quiet

from ..file.design import Design, Phase, Size
from ..file.overrides import config_of as config_of_arm
from ..file.overrides import with_settings
from ..plan.audit_keys import audited_task, reads_forwards
from ..plan.installed_arms import layers_in
from .workload import products_of

WORKERS = 2
"""Runs at a time that are assumed."""
EVALUATIONS = 0.1
"""What evaluations take, as a share of the updates."""
OPENING, START = 15.0, 0.3
"""Seconds of a study beside its runs (it imports everything twice, and reports), and of a run beside its updates."""
CAUSAL, OTHERWISE, INSTALLED = 3.0, 1.0, 0.4
"""Seconds of the audit of a mechanism that reads forwards, of any other, and of a small model with one."""
SMALL, LARGE = (16, 8, 24), (128, 16, 64)
"""Width, batch and length of the models that are timed: one has next to nothing to compute, the other little else."""
LAYERS, VOCABULARY = 2, 64
ROUNDS = 8
"""Updates of each that are timed, the best of which counts."""


@dataclass(frozen=True)
class Speed:
    """How fast this machine trains, on one thread."""

    overhead: float
    """Seconds of a layer in an update, however little it computes."""
    pace: float
    """Operations a second beyond that."""

    def update(self, layers: int, operations: float) -> float:
        """Return the seconds of one update."""
        return layers * self.overhead + operations / self.pace


@dataclass(frozen=True)
class Matrices:
    """What an update of a model costs: its layers, and operations for each token and for each labelled one."""

    layers: int
    per_token: float
    per_label: float


@dataclass(frozen=True)
class Rough:
    """What a study costs, roughly."""

    num_runs: int
    seconds: float | None
    """To its end, with WORKERS runs at a time; None where that depends on what is not known here."""
    unknown: tuple[str, ...]
    """What is not known."""


class UnknownError(Exception):
    """Something that a design does not say, and that is not on this machine; the message says what."""


def rough(design: Design, speed: Speed) -> Rough:
    """Estimate a study from its design."""
    num_runs, total = 0, 0.0
    unknown: dict[str, None] = {}
    for phase in design.phases:
        num_seeds = 1 if phase.is_shared else len(design.seeds)
        for arm in design.arms.values():
            own = with_settings(phase, arm)
            for size in design.sizes.values():
                num_runs += num_seeds
                try:
                    steps = [num_steps(own, segment, design.data.get(own.data)) for segment in own.segments]
                    total += num_seeds * run_seconds(own, steps, matrices_of(size, own, config_of_arm(arm)), speed)
                except UnknownError as error:
                    unknown[str(error)] = None
    crowding = max(1.0, WORKERS / num_cores())
    seconds = OPENING + audit_seconds(design) + total * crowding / min(WORKERS, num_runs)
    return Rough(num_runs, None if unknown else seconds, tuple(unknown))


def audit_seconds(design: Design) -> float:
    """Return what the audits before all training take: a line is audited once, whatever arms have it."""
    pairs = {(arm.line(size), size) for arm in design.arms.values() for size in design.sizes}
    alone = CAUSAL if reads_forwards(audited_task(design)) else OTHERWISE
    return alone * len({line for line, _ in pairs}) + INSTALLED * len(pairs)


def run_seconds(phase: Phase, steps: Sequence[int], matrices: Matrices, speed: Speed) -> float:
    """Return what one run of a phase takes. steps: of each segment."""
    task = load_task(phase.task, **phase.task_settings)
    seconds = 0.0
    for segment, num in zip(phase.segments, steps, strict=True):
        tokens = segment.batch * length_of(segment, task)
        operations = tokens * (matrices.per_token + labelled_share(task) * matrices.per_label)
        # Rows that do not fit at once go through the layers in several passes.
        passes = math.ceil(segment.batch / (segment.micro_batch or segment.batch))
        seconds += num * speed.update(passes * matrices.layers, operations)
    return START + (1 + EVALUATIONS) * seconds


def num_steps(phase: Phase, segment: Segment, source: Source | None) -> int:
    """Return how many updates a segment has."""
    if segment.steps is not None:
        return segment.steps
    assert segment.epochs is not None
    if source is None or source.num_train is None:
        raise UnknownError(f"how many examples '{phase.data}' has, over which '{phase.name}' goes in epochs")
    return max(1, math.ceil(segment.epochs * math.ceil(source.num_train / segment.batch)))


def length_of(segment: Segment, task: Any) -> int:
    """Return how many tokens a row has at most."""
    return int(segment.length or getattr(task, "max_len", None) or task.length)


def labelled_share(task: Any) -> float:
    """Return at which share of the tokens the vocabulary's head is asked."""
    return float(task.masking.share) if task.name == "mlm" else 1.0


def matrices_of(size: Size, phase: Phase, settings: Mapping[str, Any]) -> Matrices:
    """Count the matrices of a model. settings: of its config, an arm's own."""
    task = load_task(phase.task, **phase.task_settings)
    is_language = task.head in LANGUAGE_HEADS
    config = {**vocabulary_of(size, task, is_language), **size.config, **settings}
    named = json.dumps([phase.task, phase.task_settings, config], sort_keys=True)
    return counted(size.architecture, size.checkpoint, named, is_language)


def vocabulary_of(size: Size, task: Any, is_language: bool) -> dict[str, int]:
    """Return the setting of a config that a tokenizer decides; nothing where the model's own is to be taken."""
    kind, _, number = (size.tokenizer or "").partition(":")
    if size.checkpoint is not None or kind not in TRAINED or "vocab_size" in task.head_settings:
        return {}
    if number.isdigit():
        return {"vocab_size": int(number)}
    if is_language:
        raise UnknownError(f"how many tokens the tokenizer '{kind}' finds in the text")
    return {}


@lru_cache(maxsize=256)
def counted(architecture: str | None, checkpoint: str | None, named: str, is_language: bool) -> Matrices:
    """Count the matrices of a model that is built without memory. named: its task and config, as JSON."""
    name, task_settings, settings = json.loads(named)
    task, start = (
        load_task(name, **task_settings),
        Start(architecture=architecture, checkpoint=checkpoint, config=settings),
    )
    with quiet():
        if architecture is not None:
            config = config_of(architecture, start, task, None)
        else:
            config = changed(config_here(str(checkpoint)), start, task)
        with building(), torch.device("meta"):
            products = products_of(head_class(task).from_config(config), has_language_head=is_language)
    return Matrices(layers_in(config) or 1, products.per_token, products.per_label)


def config_here(checkpoint: str) -> Any:
    """Return the config of a checkpoint that is on this machine; the hub is not asked."""
    try:
        return AutoConfig.from_pretrained(checkpoint, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UnknownError(f"how large '{checkpoint}' is, which is not on this machine") from error


def measure() -> Speed:
    """Time updates of two small models, about a second in all; what else the machine does then does not count."""
    with one_thread(), quiet():
        few, little = timed(*SMALL)
        many, much = timed(*LARGE)
    pace = (much - little) / (many - few)
    return Speed(max(0.0, few - little / pace) / LAYERS, pace)


def timed(width: int, batch: int, length: int) -> tuple[float, float]:
    """Return the seconds of the best update of a model, and its operations."""
    config = {"n_layer": LAYERS, "n_embd": width, "n_head": 2, "n_positions": length}
    source = f"embedded:mqar?vocab={VOCABULARY}&length={length}&pairs=4&examples={batch}"
    run = RunSpec(
        task="mqar", task_settings={"vocab": VOCABULARY, "length": length}, data=Data(train=source),
        start=Start(architecture="gpt2", config=config), segments=[Segment(steps=ROUNDS + 1, batch=batch)],
        precision="fp32",
    )  # fmt: skip
    job = build(run)
    job.model.train()
    products = products_of(job.model, has_language_head=True)
    operations = batch * length * (products.per_token + products.per_label)
    # The first one has memory to find, and is no measure.
    return min(list(update_seconds(job))[1:]), operations


def update_seconds(job: Any) -> Iterator[float]:
    """Make the updates of a job, and yield the seconds of each."""
    device = torch.device("cpu")
    updater = Updater(job, choose_precision("fp32", device), Ranks(device=device))
    made = updates(job.streams[0], Share(), 0, job.num_steps)
    with closing(made):  # type: ignore[type-var]
        for step, update in enumerate(made):
            # Of the processor, since a machine that is busy now need not be so while a study runs.
            began = process_time()
            updater.move_to(step)
            updater.take(updater.compute(update, step, 0))
            yield process_time() - began
