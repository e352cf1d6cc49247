"""A study as data: arms, sizes, stages, tasks, seeds. What a TOML file says, or Python; nothing unknown passes."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)

from attnlab.errors import AttnlabError

from .choice import chosen
from .misfits import misfits

LARGEST = 2**53
"""Whole numbers beyond it are no settings, and fit no float."""


def plain_value(value: Any) -> Any:
    """Take a text, a number, a truth, or a list of these."""
    for one in value if isinstance(value, list) else [value]:
        is_number = isinstance(one, int | float) and math.isfinite(min(max(one, -LARGEST), LARGEST))
        is_settable = one is None or isinstance(one, bool) or (is_number and abs(one) <= LARGEST)
        if not is_settable and not (isinstance(one, str) and "\0" not in one):
            raise ValueError("give a text, a finite number, true or false, or a list of these")
    return value


def declared_looks(looks: Any) -> Any:
    """Take numbers of seeds that grow, or "open"."""
    if looks is None or looks == "open":
        return looks
    is_whole = isinstance(looks, list) and all(type(look) is int and 2 <= look <= 1000 for look in looks)
    if not is_whole or not looks or any(later <= earlier for earlier, later in pairwise(looks)):
        raise ValueError('looks are numbers of seeds that grow, such as [5, 10, 15, 20], or "open"')
    return looks


IS_RECORDED = "is_recorded"
"""Says of a design that it is read from a ledger: a stage of a user's own need not be known to read what came of it."""


def mechanism_line(line: str, info: ValidationInfo) -> str:
    """Take a line as its mechanism spells itself."""
    if info.context is not None and info.context.get(IS_RECORDED):
        return line
    # Imported here because a recorded design is read without torch.
    from attnlab.mechanisms import Mechanism

    try:
        return str(Mechanism.parse(line))
    except AttnlabError as error:
        raise ValueError(str(error)) from error


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=60)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Positive = Annotated[float, Field(gt=0, lt=1e12, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=0, le=0.9999999, allow_inf_nan=False)]
Text = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0b-\x1f]*$", max_length=4000)]
Value = Annotated[Any, PlainValidator(plain_value)]
Line = Annotated[Text, AfterValidator(mechanism_line)]
Settings = Annotated[dict[Text, Value], Field(max_length=200)]


class Part(BaseModel):
    """A part of a study."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Arm(Part):
    """A mechanism, and what else is different where it is studied: settings by their path, as in `--set`."""

    mechanism: Line
    by_size: dict[Text, Line] = Field(default_factory=dict)
    """Another line where the model has another size, such as an α that goes with its width."""
    set: Settings = Field(default_factory=dict)

    def line(self, size: str) -> str:
        """Return the mechanism in a model of some size."""
        return self.by_size.get(size, self.mechanism)


class Size(Part):
    """A model: an architecture with fresh weights, or a checkpoint to start from."""

    architecture: Text | None = None
    checkpoint: Text | None = None
    config: Settings = Field(default_factory=dict)
    tokenizer: Text | None = None

    @model_validator(mode="after")
    def has_one_start(self) -> Size:
        """Refuse two starts, or none."""
        if (self.architecture is None) == (self.checkpoint is None):
            raise ValueError("give architecture or checkpoint, one of the two")
        return self


class Source(Part):
    """Data by name: what to train and to evaluate on."""

    train: Text
    dev: Text | None = None
    num_train: Count | None = None
    num_dev: Count | None = None
    column: Text | None = None
    is_packed: bool = False


class Optimizing(Part):
    """The optimizer of a stage."""

    name: Literal["adamw", "adam", "sgd"] = "adamw"
    lr: Positive = 5e-4
    betas: tuple[Rate, Rate] = Field(default=(0.9, 0.999), strict=False)
    eps: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0, lt=1e6, allow_inf_nan=False)] = 0.01
    momentum: Rate = 0.9


class Phase(Part):
    """A part of a stage with one batch size and length."""

    name: Name = "train"
    steps: Count | None = None
    epochs: Positive | None = None
    batch: Count = 32
    micro_batch: Count | None = None
    length: Count | None = None
    lr: Positive | None = None
    window: Annotated[int, Field(ge=0, le=10**6)] = 50

    @model_validator(mode="after")
    def has_one_extent(self) -> Phase:
        """Refuse steps and epochs together, or neither."""
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give steps or epochs, one of the two")
        return self


class Scheduling(Part):
    """The learning rate over a stage."""

    kind: Literal["linear", "cosine", "constant"] = "linear"
    warmup: Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)] = 0.06
    floor: Share = 0.0


class Tuned(Part):
    """What is tuned."""

    mode: Literal["full", "head", "prompt", "prefix", "lora"] = "full"
    length: Count = 128
    rank: Count = 8
    alpha: Positive = 16.0
    dropout: Share = 0.0
    targets: list[Text] = Field(default_factory=list)


class Stage(Part):
    """One training of every run: pretraining, fine-tuning. A later one starts from an earlier one's weights."""

    name: Name
    task: Text
    data: Text
    after: Name | None = None
    """The stage whose weights this one starts from; None starts as the size says."""
    task_settings: Settings = Field(default_factory=dict)
    phases: list[Phase] = Field(min_length=1, max_length=20)
    optimizer: Optimizing = Field(default_factory=Optimizing)
    schedule: Scheduling = Field(default_factory=Scheduling)
    tuning: Tuned = Field(default_factory=Tuned)
    clip: Positive | None = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    evaluate_every: Count | None = None
    checkpoint_every: Count = 500
    log_every: Count = 10
    trace_every: Count | None = None
    sample_every: Count | None = None
    """Steps between samples and losses of sentences, where the model reads forwards; a large one is the end alone."""
    prompts: Annotated[list[Text], Field(max_length=50)] = Field(default_factory=lambda: [""])
    sentences: Annotated[list[Text], Field(max_length=50)] = Field(default_factory=list)
    num_tokens: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Of a sample."""
    num_scored: Count | None = None
    """So many of the examples it trains on are scored too at the end, beside those it does not."""
    smallest: Positive | None = None
    """The smallest difference worth having, in units of the task's deciding figure; None compares nothing here."""
    is_shared: bool = False
    """Whether the first seed's training serves all seeds of an arm; seeds then vary what comes after it alone."""


class Design(Part):
    """Arms, compared with a baseline over seeds that are paired."""

    name: Name
    question: Text = ""
    baseline: Name
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=1, max_length=1000)
    looks: Annotated[list[int] | Literal["open"] | None, PlainValidator(declared_looks)] = None
    """Numbers of seeds at which the study is looked at; "open" for after every seed, None for once at the end."""
    has_leaking: bool = False
    """Whether an arm whose audit finds a leak is trained too; it is never compared."""
    only_arms: list[Name] | None = None
    only_sizes: list[Name] | None = None
    """Those of the file that are taken, None for all: how a budget leaves some out."""
    arms: dict[Name, Arm] = Field(min_length=1, max_length=200)
    sizes: dict[Name, Size] = Field(min_length=1, max_length=50)
    data: dict[Name, Source] = Field(default_factory=dict)
    stages: list[Stage] = Field(min_length=1, max_length=20)

    @model_validator(mode="before")
    @classmethod
    def takes_some(cls, content: Any) -> Any:
        """Leave out the arms and sizes that are not taken."""
        return chosen(content) if isinstance(content, dict) else content

    @field_validator("arms", mode="before")
    @classmethod
    def lines_are_arms(cls, arms: Any) -> Any:
        """Take a line where an arm is nothing else."""
        if not isinstance(arms, dict):
            return arms
        return {name: {"mechanism": arm} if isinstance(arm, str) else arm for name, arm in arms.items()}

    @model_validator(mode="after")
    def fits_together(self) -> Design:
        """Refuse names that nothing has, and doubles."""
        wrong = misfits(self.model_dump())
        if wrong:
            raise ValueError("; ".join(f"{'.'.join(map(str, place))}: {why}" for place, why in wrong))
        return self
