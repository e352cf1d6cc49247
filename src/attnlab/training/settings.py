"""How one run trains: its stages, optimizer, learning rate, precision, and what is watched on the way.

`Settings` decides the result; `Watching` decides what is written down about it, and when.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from attnlab.errors import TrainingError, closest

from .tuning import Tuning

LARGEST = 1e300


def check_number(what: str, value: object, low: float, high: float = math.inf, *, is_whole: bool = False) -> None:
    """Refuse what is no number, or out of bounds."""
    kind = int if is_whole else (int, float)
    # Past LARGEST a whole number fits no float any more, and infinity is none.
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= min(high, LARGEST):
        bound = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise TrainingError(f"{what} is a {'whole ' if is_whole else ''}number {bound}, not {value!r}")


def check_choice(what: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of those known."""
    if value not in known:
        hint = closest(str(value), known) or "."
        raise TrainingError(f"{what} is one of {', '.join(known)}, not {value!r}{hint}")


@dataclass(frozen=True)
class Stage:
    """A part of a run with one batch size and length: a number of steps, or of epochs over its data."""

    name: str = "train"
    steps: int | None = None
    epochs: float | None = None
    batch: int = 32
    """Rows of an update, over all processes together."""
    micro_batch: int | None = None
    """Rows of one pass: an update adds up the gradients of several, which costs time and saves memory."""
    length: int | None = None
    """Tokens of a row; None leaves them as the task's own settings make them."""
    lr: float | None = None
    """The highest learning rate of this stage; None takes the optimizer's."""
    window: int = 50
    """Batches whose rows are sorted by length among each other, so that there is little padding; 0 does not sort."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise TrainingError(
                f"stage '{self.name}' needs steps or epochs, one of them; got {self.steps}, {self.epochs}"
            )
        check_number(f"batch of stage '{self.name}'", self.batch, 1, is_whole=True)
        check_number(f"window of stage '{self.name}'", self.window, 0, is_whole=True)
        for what in ("steps", "micro_batch", "length"):
            if getattr(self, what) is not None:
                check_number(f"{what} of stage '{self.name}'", getattr(self, what), 1, is_whole=True)
        if self.epochs is not None:
            check_number(f"epochs of stage '{self.name}'", self.epochs, 1e-9)
        if self.lr is not None:
            check_number(f"lr of stage '{self.name}'", self.lr, 0)

    def num_steps(self, steps_per_epoch: int) -> int:
        """Return how many updates the stage has."""
        return self.steps if self.steps is not None else max(1, math.ceil((self.epochs or 0) * steps_per_epoch - 1e-9))


@dataclass(frozen=True)
class Optimizer:
    """What turns gradients into updates. Weight decay is for matrices; α, exponents, norms and biases have none."""

    name: Literal["adamw", "adam", "sgd"] = "adamw"
    """adamw decouples weight decay from the gradient (Loshchilov & Hutter 2019); adam and sgd add it to it."""
    lr: float = 5e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    momentum: float = 0.9
    """Of sgd."""

    def __post_init__(self) -> None:
        check_choice("optimizer", self.name, ("adamw", "adam", "sgd"))
        check_number("lr", self.lr, 0)
        if len(self.betas) != 2:
            raise TrainingError(f"betas are two numbers, not {self.betas!r}")
        for beta in self.betas:
            check_number("beta", beta, 0, 0.9999999)
        check_number("eps", self.eps, 0)
        check_number("weight_decay", self.weight_decay, 0)
        check_number("momentum", self.momentum, 0, 0.9999999)


@dataclass(frozen=True)
class Schedule:
    """The learning rate over a run: from 0 up in `warmup`, then down to `floor` of its height, or not."""

    kind: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.06
    """Steps, or below 1 a share of all steps."""
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_choice("schedule", self.kind, ("linear", "cosine", "constant"))
        check_number("warmup", self.warmup, 0)
        check_number("floor", self.floor, 0, 1)


@dataclass(frozen=True)
class Settings:
    """All that decides the result of a run besides its model, task and data."""

    stages: tuple[Stage, ...] = (Stage(epochs=1),)
    seed: int = 0
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    tuning: Tuning = field(default_factory=Tuning)
    clip: float | None = 1.0
    """The largest norm of the gradient; None leaves it as it is."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Of matrix products; weights, sums and updates are fp32. auto takes bf16 where it works and is faster."""
    divergence: float | None = 3.0
    """A mean loss this many times that of the first steps has diverged; NaN and infinity have in any case."""
    patience: int | None = None
    """Evaluations without a better one that stop the run early; None never does."""
    is_compiled: bool = False
    """Whether torch.compile is given the layers."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise TrainingError("a run needs at least one stage; it has none")
        check_number("seed", self.seed, 0, 2**63 - 1, is_whole=True)
        check_choice("precision", self.precision, ("auto", "fp32", "bf16"))
        if self.clip is not None:
            check_number("clip", self.clip, 1e-12)
        if self.divergence is not None:
            check_number("divergence", self.divergence, 1)
        if self.patience is not None:
            check_number("patience", self.patience, 1, is_whole=True)


@dataclass(frozen=True)
class Watching:
    """What is written down on the way; none of it changes the result, but for which checkpoint is the best."""

    evaluate_every: int | None = None
    """Steps between evaluations; None evaluates at the end alone."""
    checkpoint_every: int = 500
    log_every: int = 10
    trace_every: int | None = None
    """Steps between traces of weight norms, attention entropy, α and exponents."""
    sample_every: int | None = None
    """Steps between samples and losses of sentences, where the model reads forwards."""
    prompts: tuple[str, ...] = ("",)
    sentences: tuple[str, ...] = ()
    num_tokens: int = 40
    num_scored: int | None = None
    """So many of the examples it trains on are scored too at the end, to hold beside those it does not."""
    has_tensorboard: bool = False

    def __post_init__(self) -> None:
        for what in ("evaluate_every", "checkpoint_every", "log_every", "trace_every", "sample_every", "num_scored"):
            value = getattr(self, what)
            if value is not None or what in ("checkpoint_every", "log_every"):
                check_number(what, value, 1, is_whole=True)


def differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Name every key at which two records differ, with both values."""
    found = []
    for key in dict.fromkeys([*one, *other]):
        mine, theirs = (as_mapping(value.get(key)) for value in (one, other))
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found += differences(mine, theirs, f"{prefix}{key}.")
        elif mine != theirs:
            found.append(f"{prefix}{key} ({mine!r}, there {theirs!r})")
    return found


def as_mapping(value: Any) -> Any:
    """Return a list as a mapping from its places, and all else as it is."""
    return {str(place): entry for place, entry in enumerate(value)} if isinstance(value, list) else value
