"""The time of a run, predicted from the design of its study without data or weights.

A run takes START + (1 + EVALUATIONS) · Σ steps · (layers · overhead + operations / pace). Operations of an update are
6·(W·t + H·l) of its t = batch · length tokens, as in `run/workload.py`, without those of attention; overhead and pace
are measured on a small GPT-2. It assumes full rows, arms that cost as much as plain attention, products in fp32, that
all weights are trained, and for a tokenizer that is given by name the usual vocabulary of its architecture.
"""

import functools
import json
import math
from collections.abc import Mapping
from time import process_time
from typing import Any

import torch
import transformers
from transformers import AutoConfig

from attnlab.data.tokenizers.training import TOKENIZER_KINDS
from attnlab.errors import PretrainedError
from attnlab.kernels.measure import one_thread
from attnlab.pretrained import load_pretrained
from attnlab.tasks import load as load_task
from attnlab.training import Data, RunSpec, Segment, Start, build
from attnlab.training.job import weights
from attnlab.training.loop.precision import choose_precision
from attnlab.training.loop.ranks import Ranks
from attnlab.training.loop.update import Updater
from attnlab.training.spec import DataSource

from ..file.design import Design, Phase, Size
from ..file.overrides import apply_settings
from ..plan.audit_keys import find_audited_task, is_causal_task
from ..plan.installed_arms import count_layers
from ..run.workload import Products, count_products
from .timing import time_updates

EVALUATIONS = 0.1
"""The time of evaluations, as a share of that of the updates."""
OPENING, START = 15.0, 0.3
"""Seconds of a study in addition to its runs (imports, the report), and of a run in addition to its updates."""
CAUSAL, OTHERWISE, INSTALLED = 3.0, 1.0, 0.4
"""Seconds of the audit of a causal mechanism, of any other, and of a small model with one."""
SMALL, LARGE = (16, 8, 24), (128, 16, 64)
"""Width, batch and length of the timed models: in one overhead dominates, in the other computation."""
LAYERS, VOCABULARY = 2, 64
ROUNDS = 8
"""Timed updates of each, of which the fastest counts."""


class UnknownError(Exception):
    """An input of the prediction that neither the design nor this machine has; the message names it."""


def predict_run(design: Design, phase: Phase, size: str, arm: str) -> float:
    """Return the seconds of one run; raise an UnknownError if they depend on something that is not known."""
    phase = apply_settings(phase, design.arms[arm])
    steps = [_count_steps(phase, segment, design.data.get(phase.data)) for segment in phase.segments]
    num_layers, products = count_size(design.sizes[size], phase, design.arms[arm].config)
    task, (overhead, pace), seconds = load_task(phase.task, **phase.task_settings), measure_speed(), 0.0
    share_labelled = float(task.masking.share) if task.name == "mlm" else 1.0
    for segment, num_steps in zip(phase.segments, steps, strict=True):
        length = int(segment.length or getattr(task, "max_len", None) or task.length)
        total = segment.batch * length * (products.per_token + share_labelled * products.per_label)
        # Micro-batches pass through the layers one after another.
        num_passes = math.ceil(segment.batch / (segment.micro_batch or segment.batch))
        seconds += num_steps * (num_passes * num_layers * overhead + total / pace)
    return START + (1 + EVALUATIONS) * seconds


def predict_audit_seconds(design: Design) -> float:
    """Return the seconds of the audits before training: a line is audited once, even if several arms have it."""
    pairs = {(arm.line(size), size) for arm in design.arms.values() for size in design.sizes}
    alone = CAUSAL if is_causal_task(find_audited_task(design)) else OTHERWISE
    return alone * len({line for line, _ in pairs}) + INSTALLED * len(pairs)


def count_size(size: Size, phase: Phase, settings: Mapping[str, Any]) -> tuple[int, Products]:
    """Count the layers and the products of a model. settings: those of its config that an arm changes."""
    task = load_task(phase.task, **phase.task_settings)
    config = {**_find_vocabulary(size, task), **size.config, **settings}
    content = json.dumps([phase.task, phase.task_settings, config], sort_keys=True)
    return _count_model(size.architecture, size.checkpoint, content)


@functools.cache
def measure_speed() -> tuple[float, float]:
    """Time updates of two small models on one thread, about a second in all.

    Return the overhead, seconds of a layer in an update independent of its size, and the pace, operations per second.
    """
    with one_thread(), weights.silence_transformers():
        fast, few = _time_model(*SMALL)
        slow, many = _time_model(*LARGE)
    pace = (many - few) / (slow - fast)
    return max(0.0, fast - few / pace) / LAYERS, pace


def _count_steps(phase: Phase, segment: Segment, source: DataSource | None) -> int:
    if segment.steps is not None:
        return segment.steps
    assert segment.epochs is not None
    if source is None or source.num_train is None:
        raise UnknownError(f"how many examples '{phase.data}' has, over which '{phase.name}' goes in epochs")
    return max(1, math.ceil(segment.epochs * math.ceil(source.num_train / segment.batch)))


def _find_vocabulary(size: Size, task: Any) -> dict[str, int]:
    """Return the vocabulary of a tokenizer as a setting of the config; empty if the model has one."""
    kind, _, number = (size.tokenizer or "").partition(":")
    if size.checkpoint is not None or kind not in TOKENIZER_KINDS or "vocab_size" in task.head_settings:
        return {}
    if number.isdigit():
        return {"vocab_size": int(number)}
    if task.head in weights.LANGUAGE_HEADS:
        raise UnknownError(f"how many tokens the tokenizer '{kind}' finds in the text")
    return {}


@functools.lru_cache(maxsize=256)
def _count_model(architecture: str | None, checkpoint: str | None, content: str) -> tuple[int, Products]:
    """Count a model that is built without memory. content: its task and config, as JSON."""
    name, task_settings, settings = json.loads(content)
    task = load_task(name, **task_settings)
    start = Start(architecture=architecture, checkpoint=checkpoint, config=settings)
    with weights.silence_transformers():
        if architecture is not None:
            config = weights.make_config(architecture, start, task, None)
        else:
            try:
                original = load_pretrained(AutoConfig, str(checkpoint), local_files_only=True)
            except PretrainedError as error:
                raise UnknownError(f"how large '{checkpoint}' is, which is not on this machine") from error
            config = weights.update_config(original, start, task)
        with weights.explain_config_errors(), torch.device("meta"):
            model = getattr(transformers, task.head).from_config(config)
    return count_layers(config) or 1, count_products(model, has_language_head=task.head in weights.LANGUAGE_HEADS)


def _time_model(width: int, batch: int, length: int) -> tuple[float, float]:
    """Return the seconds of the best update of a model, and its operations."""
    config = {"n_layer": LAYERS, "n_embd": width, "n_head": 2, "n_positions": length}
    source = f"embedded:mqar?vocab={VOCABULARY}&length={length}&pairs=4&examples={batch}"
    job = build(RunSpec(
        task="mqar", task_settings={"vocab": VOCABULARY, "length": length}, data=Data(train=source),
        start=Start(architecture="gpt2", config=config), segments=[Segment(steps=ROUNDS + 1, batch=batch)],
        precision="fp32",
    ))  # fmt: skip
    job.model.train()
    products = count_products(job.model, has_language_head=True)
    device = torch.device("cpu")
    updater = Updater(job, choose_precision("fp32", device), Ranks(device=device))
    # Processor time, since a machine that is busy now may be idle while a study runs.
    times = [seconds for seconds, _ in time_updates(updater, 0, ROUNDS + 1, process_time)]
    # The first update also allocates memory.
    return min(times[1:]), batch * length * (products.per_token + products.per_label)
