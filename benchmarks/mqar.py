"""Does recall at the published size tell mechanisms apart? MQAR of zoology (arXiv:2312.04927), 64 tokens and 4 pairs.

A GPT-2 of transformers with four heads of 16 channels and a feed-forward layer of one unit (zoology's models have
none), trained on fresh rows by `attnlab.training`, at the four learning rates of zoology's Figure 2; of an arm the best
of the four counts. With one head of 64 channels the state of linear attention holds four pairs, and both mechanisms end
at 1.0. A run that was stopped goes on: they are kept in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnlab.data.cache import hash_of
from attnlab.machine import cache_folder
from benchmarks.table import Table

RATES = tuple(float(f"{rate:.2e}") for rate in np.logspace(-4, -2, 4))
COLUMNS = ("layers", "mechanism", "learning rate", "accuracy", "floor", "solved at step")

SOLVED, UNSOLVED, APART = 0.99, 0.5, 0.05


@dataclass(frozen=True)
class Size:
    """What all runs have in common."""

    vocab: int = 8192
    length: int = 64
    pairs: int = 4
    width: int = 64
    steps: int = 5000
    batch: int = 64
    held_out: int = 1000
    initializer_range: float = 0.1
    heads: int = 4


@dataclass(frozen=True)
class Arm:
    """A mechanism in a model of so many layers."""

    layers: int
    mechanism: str


SOFTMAX, SHALLOW, LINEAR = Arm(2, "dot | softmax"), Arm(1, "dot | softmax"), Arm(2, "cosine | identity(divide=n)")


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    arm: Arm
    rate: float
    accuracy: float
    floor: float
    curve: Mapping[int, float]
    seconds: float

    @property
    def solved_at(self) -> int | None:
        """The first evaluated step at which the task is solved."""
        return next((step for step, accuracy in self.curve.items() if accuracy >= SOLVED), None)


def table(size: Size | None = None, rates: Sequence[float] = RATES, folder: Path | None = None) -> Table:
    """Train every arm at every rate, or take what is there already."""
    size = size or Size()
    outcomes = [
        trained(size, arm, rate, folder or cache_folder() / "benchmarks")
        for arm in (SOFTMAX, SHALLOW, LINEAR) for rate in rates
    ]  # fmt: skip
    best = {arm: max((one for one in outcomes if one.arm == arm), key=lambda one: one.accuracy) for arm in
            (SOFTMAX, SHALLOW, LINEAR)}  # fmt: skip
    targets = {
        SOFTMAX: (f"≥ {SOLVED}", best[SOFTMAX].accuracy >= SOLVED),
        SHALLOW: (f"< {UNSOLVED}", best[SHALLOW].accuracy < UNSOLVED),
        LINEAR: (f"{APART} below softmax", best[SOFTMAX].accuracy - best[LINEAR].accuracy >= APART),
    }
    rows = []
    for one in outcomes:
        target, is_met = targets[one.arm] if one is best[one.arm] else ("", True)
        solved_at = "never" if one.solved_at is None else f"{one.solved_at:,}"
        rows.append((
            str(one.arm.layers), one.arm.mechanism, f"{one.rate:.2g}", f"{one.accuracy:.4f}", f"{one.floor:.4f}",
            solved_at, f"{one.seconds / 60:.1f}", target,
            "" if not target else "✓" if is_met else "✗",
        ))  # fmt: skip
    columns = (*COLUMNS, "minutes", "target", "met")
    title = (
        f"MQAR, {size.length} tokens, {size.pairs} pairs, vocabulary {size.vocab:,}: GPT-2, {size.width} wide, "
        f"{size.heads} heads, {size.steps:,} steps of {size.batch} fresh rows, {size.held_out:,} rows held out"
    )
    return Table(title, columns, rows, (), sum(not is_met for _, is_met in targets.values()))


def trained(size: Size, arm: Arm, rate: float, folder: Path) -> Outcome:
    """Train one run, or go on with it, or read what it came to."""
    from attnlab.training import Data, Display, Optimizer, RunSpec, Schedule, Segment, Start, build, train
    from attnlab.training.record.metrics import Metrics

    name = f"embedded:mqar?vocab={size.vocab}&length={size.length}&pairs={size.pairs}&examples={size.held_out}"
    config = {
        "n_layer": arm.layers, "n_embd": size.width, "n_head": size.heads, "n_inner": 1, "n_positions": size.length,
        "initializer_range": size.initializer_range, "bos_token_id": 0, "eos_token_id": 0,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
    }  # fmt: skip
    run = RunSpec(
        task="mqar",
        task_settings={"vocab": size.vocab, "length": size.length, "is_fresh": True},
        start=Start(architecture="gpt2", config=config, mechanism=arm.mechanism),
        data=Data(train=name, dev=name),
        segments=[Segment(steps=size.steps, batch=size.batch)],
        seed=1,
        optimizer=Optimizer(lr=rate, weight_decay=0.1),
        schedule=Schedule(kind="cosine"),
        precision="fp32",
        evaluate_every=max(1, size.steps // 20),
        log_every=max(1, size.steps // 10),
        threads=1,
    )
    place = folder / f"mqar-{hash_of(run.config)[:12]}"
    result = train(build(run), place, Display(is_quiet=True))
    if result.last is None or result.last.floor is None:
        raise RuntimeError(f"{place}: {result.sentence}; delete the folder to run it again")
    lines = [line for line in Metrics.read(place / "metrics.jsonl") if line["kind"] == "evaluation"]
    curve = {int(line["step"]): float(line["accuracy"]) for line in lines}
    return Outcome(arm, rate, result.last.value, result.last.floor, curve, result.seconds)
