"""Small runs of every task, and what is compared of the folders they leave."""

import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.training import Data, Display, Job, Optimizer, RunSpec, Schedule, Segment, Start, build, train
from attnlab.training.record.checkpoint import Checkpoint, Checkpoints
from attnlab.training.record.files import read_json
from attnlab.training.record.metrics import Metrics
from attnlab.training.spec import Watching

SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "bert": {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 64
    },
}  # fmt: skip
DROPOUTS = {
    "gpt2": ("attn_pdrop", "resid_pdrop", "embd_pdrop"),
    "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
}
WORLD = "embedded:squad?articles=6&people=1"
"""Thirty paragraphs of one to five sentences."""
DATA = {
    "clm": Data(train=WORLD, tokenizer="word:150", num_train=30, num_dev=7),
    "mlm": Data(train=WORLD, tokenizer="wordpiece:200", num_train=30, num_dev=7),
    "squad": Data(train=WORLD, tokenizer="wordpiece:200", num_train=20, num_dev=5),
    "mqar": Data(train="", num_train=30, num_dev=7),
}
TASKS: dict[str, dict[str, Any]] = {
    "clm": {"max_len": 32}, "mlm": {"max_len": 32}, "squad": {"max_len": 48, "stride": 16},
    "mqar": {"vocab": 32, "length": 24}, "sst2": {},
}  # fmt: skip
TIMING = ("tokens_per_second", "seconds")


def architecture_of(task: str) -> str:
    """Return the kind of model that a task is tried with."""
    return "gpt2" if task in ("clm", "mqar") else "bert"


def small(
    task: str = "clm", *, segments: tuple[Segment, ...] = (Segment(steps=6, batch=4),), dropout: float = 0.0,
    mechanism: str = "dot | softmax", data: Data | None = None,
    start: Start | None = None, **settings: Any,
) -> RunSpec:  # fmt: skip
    """Describe a small run in fp32, without dropout unless it is asked for."""
    kind = architecture_of(task)
    config = {**SIZES[kind], **dict.fromkeys(DROPOUTS[kind], dropout)}
    chosen = {
        "optimizer": Optimizer(lr=3e-3), "schedule": Schedule(warmup=2), "precision": "fp32", "seed": 3, **settings,
    }  # fmt: skip
    if not chosen.keys() & Watching.model_fields.keys():
        chosen["log_every"] = 1
    start = start or Start(architecture=kind, config=config, mechanism=mechanism)
    chosen = {"task_settings": TASKS[task], "segments": segments, "threads": 1, **chosen}
    return RunSpec(task=task, start=start, data=data or DATA[task], **chosen)


def quiet() -> Display:
    """Return a display that shows nothing."""
    return Display(is_quiet=True)


def trained(run: RunSpec, folder: Path) -> tuple[Job, Any]:
    """Build and train a run; return its job and its result."""
    job = build(run)
    return job, train(job, folder, quiet())


class Stopping(Display):
    """A display that asks the run to stop after given steps, as Ctrl-C does."""

    def __init__(self, steps: Collection[int]) -> None:
        super().__init__(is_quiet=True)
        self.steps = steps

    def advance(self, step: int, num_steps: int, tokens: int, loss: float) -> float:
        if step in self.steps:
            signal.raise_signal(signal.SIGINT)
        return super().advance(step, num_steps, tokens, loss)


class Listening(Display):
    """A display that remembers what was said."""

    def __init__(self) -> None:
        super().__init__(is_quiet=True)
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def lines_of(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the metrics without what the clock says."""
    lines = Metrics.read(folder / "metrics.jsonl")
    return [
        {name: value for name, value in line.items() if name not in TIMING}
        for line in lines
        if kind is None or line["kind"] == kind
    ]


def losses_of(folder: Path) -> list[float]:
    """Return the loss of every update."""
    return [line["loss"] for line in lines_of(folder, "train")]


def checkpoints_of(folder: Path) -> Checkpoints:
    """Return the checkpoints of a run; a damaged one is an error."""

    def complain(message: str) -> None:
        raise AssertionError(message)

    return Checkpoints(folder / "checkpoints", complain)


def last_of(folder: Path) -> Checkpoint:
    """Return the last checkpoint of a run."""
    found = checkpoints_of(folder).load_last()
    assert found is not None
    return found


def assert_same_tensors(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Compare tensors bit for bit."""
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def assert_same_run(folder: Path, whole: Path) -> None:
    """Compare what two processes left: weights and optimizer bit for bit, every line of the metrics, the result."""
    one, other = last_of(folder), last_of(whole)
    assert one.step == other.step
    assert_same_tensors(one.model, other.model)
    assert_same_tensors(one.optimizer, other.optimizer)
    assert lines_of(folder) == lines_of(whole)
    mine, theirs = (read_json(path / "result.json") for path in (folder, whole))
    timed = {"seconds": 0, "metrics.jsonl": {}}
    assert mine | timed == theirs | timed
