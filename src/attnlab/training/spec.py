"""The settings of a run: every name, bound and default, once, for study files, `attnlab train` and Python.

`Settings` are those of the training itself, `TaskSettings` are what a phase of a study and a run have in common, and a
`RunSpec` adds the model and the data. All are immutable; `replace` returns a changed copy.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, field_validator, model_validator

from attnlab.errors import TrainingError, closest
from attnlab.inputs import expand_path
from attnlab.notebook import Facts, Showable

LARGEST = 2**53
"""Larger whole numbers are not exact as floats."""


def _check_plain(value: Any) -> Any:
    for entry in value if isinstance(value, list) else [value]:
        is_number = isinstance(entry, int | float) and abs(entry) <= LARGEST  # neither infinite nor NaN
        is_text = isinstance(entry, str) and "\0" not in entry
        if not (entry is None or isinstance(entry, bool) or is_number or is_text):
            raise ValueError("give a text, a finite number, true or false, or a list of these")
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=60)]
Text = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0b-\x1f]*$", max_length=4000)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Positive = Annotated[float, Field(gt=0, lt=1e300, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, lt=1e300, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=0, le=0.9999999, allow_inf_nan=False)]
Plain = Annotated[Any, PlainValidator(_check_plain)]
PlainSettings = Annotated[dict[Text, Plain], Field(max_length=200)]
Texts = Annotated[tuple[Text, ...], Field(max_length=50, strict=False)]
Mode = Literal["full", "head", "prompt", "prefix", "lora"]

if TYPE_CHECKING:
    _ModelMeta = type
else:
    _ModelMeta = type(BaseModel)


class _ClearErrors(_ModelMeta):
    """Makes a call such as `Optimizer(lr=-1)` raise a `TrainingError` with one sentence."""

    def __call__(self, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except ValidationError as error:
            raise TrainingError(f"{self.__name__}: {describe_error(error, self)}") from error


class Section(BaseModel, metaclass=_ClearErrors):  # type: ignore[metaclass]
    """A group of settings; unknown names and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})


def describe_error(error: ValidationError, kind: type) -> str:
    """Describe the first wrong value, with the closest setting for an unknown name."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *place, name = first["loc"]
        known, paths = list_names(kind, place), find_paths(kind, place, str(name))
        hint = f"; write {' or '.join(paths)}." if paths else closest(str(name), known) or "."
        return f"there is no setting '{where}'{hint} There are {', '.join(known)}"
    message = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    given = f", not {first['input']!r}" if first["type"] not in ("value_error", "missing") else ""
    if first["type"] == "literal_error":
        given += closest(str(first["input"]), re.findall(r"'([^']*)'", message)).rstrip(".")
    return f"{where + ': ' if where else ''}{message[:1].lower()}{message[1:]}{given}"


def list_names(kind: type, place: Sequence[str | int]) -> list[str]:
    """List the settings of a section at a place below `kind`, such as ("phases", 0, "optimizer")."""
    section: Any = kind
    for step in place:
        if hasattr(section, "model_fields"):
            section = section.model_fields[step].annotation if step in section.model_fields else None
            # Of an optional section, such as SearchSettings | None, the section.
            if type(None) in get_args(section):
                section = next((part for part in get_args(section) if hasattr(part, "model_fields")), section)
        else:  # dict[name, section], list[section] or tuple[section, ...]
            section = next((part for part in reversed(get_args(section)) if part is not Ellipsis), None)
    return list(getattr(section, "model_fields", {}))


def find_paths(kind: type, place: Sequence[str | int], name: str) -> list[str]:
    """Find the settings of this name in the sections of a place, such as segments.0.length for length."""
    sections = [(*place, *below) for field in list_names(kind, place) for below in ((field,), (field, 0))]
    return [".".join(str(step) for step in (*path, name)) for path in sections if name in list_names(kind, path)]


class Segment(Section):
    """A part of a run with one batch size and length: a number of steps, or of epochs over its data."""

    name: Name = "train"
    steps: Count | None = None
    epochs: Positive | None = None
    batch: Count = 32
    """Rows of an update, over all processes together."""
    micro_batch: Count | None = None
    """Rows of one forward pass; an update sums the gradients of several passes, which saves memory and costs time."""
    length: Count | None = None
    """Tokens of a row; None for the length in the task's settings."""
    lr: NotNegative | None = None
    """The peak learning rate of this segment; None for the optimizer's."""
    window: Annotated[int, Field(ge=0, le=10**6)] = 50
    """Batches whose rows are sorted by length together, to reduce padding; 0 does not sort."""

    @model_validator(mode="after")
    def _has_one_extent(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give steps or epochs, one of the two")
        return self

    def num_steps(self, steps_per_epoch: int) -> int:
        """Return the number of updates."""
        return self.steps if self.steps is not None else max(1, math.ceil((self.epochs or 0) * steps_per_epoch - 1e-9))


class Optimizer(Section):
    """The optimizer. Weight decay applies to matrices, not to α, exponents, norms and biases."""

    name: Literal["adamw", "adam", "sgd", "muon"] = "adamw"
    """adamw decouples weight decay from the gradient (Loshchilov & Hutter 2019); adam and sgd add it there. muon
    updates the matrices of the linear layers in the blocks (Jordan et al. 2024), and adamw everything else."""
    lr: NotNegative = 5e-4
    adamw_lr: NotNegative | None = None
    """With muon, the learning rate of what adamw updates; None for `lr`."""
    betas: Annotated[tuple[Rate, Rate], Field(strict=False)] = (0.9, 0.999)
    eps: NotNegative = 1e-8
    weight_decay: NotNegative = 0.01
    momentum: Rate = 0.9
    """Used by sgd only; that of muon is 0.95."""


class Schedule(Section):
    """The learning rate over a run: linear warmup, then decay to `floor` times the peak, or constant."""

    kind: Literal["linear", "cosine", "constant"] = "linear"
    warmup: NotNegative = 0.06
    """Steps, or a share of all steps if below 1."""
    floor: Fraction = 0.0


class Tuning(Section):
    """What is trained: all (`full`), the head (`head`), or parameters added to a frozen model (the others)."""

    mode: Mode = "full"
    length: Count = 128
    """Tokens of a prompt or a prefix."""
    rank: Count = 8
    alpha: Positive = 16.0
    dropout: Rate = 0.0
    targets: Texts = ()
    """Linear modules that LoRA adapts, such as query; empty for peft's defaults for the architecture."""


class Watching(Section):
    """What is recorded during a run. It changes no weights, only which checkpoint counts as the best."""

    evaluate_every: Count | None = None
    """Steps between evaluations; None evaluates late in the run and at its end only."""
    checkpoint_every: Count = 500
    log_every: Count = 10
    trace_every: Count | None = None
    """Steps between traces of weight norms, attention entropy, α and exponents."""
    sample_every: Count | None = None
    """Steps between samples and losses of sentences, for causal models; a large number samples only at the end."""
    prompts: Texts = ("",)
    sentences: Texts = ()
    num_tokens: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Length of a sample."""
    num_scored: Count | None = None
    """Training examples that are also scored at the end, for comparison with the held-out ones."""
    trackers: Texts = ()
    """Programs that show figures: tensorboard, wandb, trackio; they send nothing, unless as in wandb:online."""
    project: Name | None = None
    """The project of the run in trackers; None for the name of the study, or attnlab."""


class Settings(Watching):
    """How a model is trained."""

    segments: Annotated[tuple[Segment, ...], Field(max_length=20, strict=False)] = (Segment(epochs=1.0),)
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    tuning: Tuning = Tuning()
    clip: Positive | None = 1.0
    """The maximum norm of the gradient; None does not clip."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """For matrix products; weights, sums and updates are fp32. auto uses bf16 if it works and is faster."""
    divergence: Annotated[float, Field(ge=1, lt=1e12, allow_inf_nan=False)] | None = 3.0
    """A run diverged if its mean loss is this many times that of the first steps; NaN and infinity always diverge."""
    patience: Count | None = None
    """Evaluations without improvement after which the run stops early; None never stops early."""
    is_compiled: bool = False
    """Whether the layers are compiled by torch.compile."""

    @field_validator("segments")
    @classmethod
    def _has_segments(cls, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        if not segments:
            raise ValueError("give at least one segment")
        return segments

    @property
    def result_settings(self) -> dict[str, Any]:
        """The settings that affect the result, as plain data."""
        return self.model_dump(mode="json", include=Settings.model_fields.keys() - WITHOUT_EFFECT)


class TaskSettings(Settings):
    """A task and how a model is trained on it: what a phase of a study and a run have in common."""

    task: Text
    task_settings: PlainSettings = Field(default={})
    figure_at: Literal["last", "best"] = "last"
    """Which evaluation counts: the last, or that of the checkpoint with the best figure on the tuning data (`tune` or
    `num_tune`), which is then not trained on."""


WITHOUT_EFFECT = {*Watching.model_fields, "threads", "title"}
"""Settings that do not affect the result."""


LANGUAGE = ("clm", "mlm")
"""The tasks that read plain text."""


class DataSource(Section):
    """What to train and evaluate on: sources as `attnlab.data` names them."""

    train: Text
    """Empty for a probe that generates its own examples."""
    dev: Text | None = None
    """None for the dev split of `train`, if it has splits."""
    num_train: Count | None = None
    """Use only the first `num_train` examples."""
    num_dev: Count | None = None
    tune: Text | None = None
    """What the trials of a search are evaluated on, and the best checkpoint is chosen on (figure_at); no figure that
    is compared is measured on it."""
    num_tune: Count | None = None
    """In place of `tune`: the last `num_tune` training examples, which are then not trained on."""
    column: Text | None = None
    """The column of texts in a table, to train a language model or a tokenizer on."""
    unit: Literal["line", "paragraph", "file"] = "line"
    """What a document of a text file is; a paragraph ends at a blank line."""
    is_packed: bool = False
    """Whether a language model trains on packed rows of a token file instead of one line per row."""
    has_random_starts: bool = False
    """Whether packed rows begin at any token, in random order, instead of one where the row before it ends."""

    @model_validator(mode="after")
    def _counts_examples(self) -> Self:
        if self.is_packed and self.num_train is not None:
            raise ValueError("num_train counts examples, and packed rows are not examples; leave one of the two out")
        if self.has_random_starts and not self.is_packed:
            raise ValueError("has_random_starts is about packed rows; set is_packed = true, or leave it out")
        if self.num_tune is not None and (self.is_packed or self.tune is not None):
            why = (
                "tune has data of its own for that; leave one of the two out"
                if self.tune is not None
                else "packed rows are not examples; write is_packed = false, so that every line is a row of its own, "
                'or tune = "FILE" in place of num_tune'
            )
            raise ValueError(f"num_tune counts training examples for tuning, and {why}")
        return self

    def choose_packing(self) -> Self:
        """Return the source as a language model reads it: packed, unless is_packed or a number of examples is set."""
        is_whole = self.num_train is None and self.num_tune is None
        if "is_packed" in self.model_fields_set or not is_whole:
            return self
        return self.model_copy(update={"is_packed": True})


class TokenizerChoice(Section):
    """How texts are tokenized."""

    tokenizer: Text | None = None
    """A directory, a file or a name on the hub; or 'word', 'wordpiece', 'bpe' or 'char', trained on the training text,
    with an optional size after a colon. None for the tokenizer of the checkpoint to start from."""


class Data(TokenizerChoice, DataSource):
    """What a run trains and is evaluated on, and how it is tokenized."""


class Model(Section):
    """An architecture with new weights, or a checkpoint."""

    architecture: Text | None = None
    """A model type of transformers, such as gpt2."""
    checkpoint: Text | None = None
    """A directory, a name on the hub, a model saved by `attnlab.save`, or a run's folder (`:best` for its best)."""
    config: PlainSettings = Field(default={})
    """Settings of the model's config, such as n_layer."""

    @model_validator(mode="after")
    def _has_one_start(self) -> Self:
        if (self.architecture is None) == (self.checkpoint is None):
            raise ValueError(
                "give architecture (a model type, such as gpt2) or checkpoint, one of the two; got "
                f"{self.architecture!r} and {self.checkpoint!r}"
            )
        return self


class Start(Model):
    """A model before training, with its mechanism."""

    mechanism: Text = "dot | softmax"


class RunSpec(Showable, TaskSettings):
    """One run: a task, a model, data and settings."""

    start: Start
    data: Data = Data(train="")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    threads: Count | None = None
    title: Text = ""
    """The name of the run in trackers; empty for the name of its folder."""

    @model_validator(mode="after")
    def _has_two_rates_with_muon(self) -> Self:
        # Not in Optimizer, because an arm changes one setting after the other.
        optimizer = self.optimizer
        if optimizer.adamw_lr is not None and optimizer.name != "muon":
            raise ValueError(
                f"optimizer.adamw_lr is for muon; with '{optimizer.name}', all parameters have optimizer.lr"
            )
        if optimizer.adamw_lr is not None and not optimizer.lr:
            raise ValueError("optimizer.adamw_lr needs an optimizer.lr above 0: schedules change both by one factor")
        return self

    def facts(self) -> Facts:
        """Return the model, the mechanism, the seed, and the settings that are not the default, by their paths."""
        model = self.start.architecture or self.start.checkpoint
        rows = list_paths(self.model_dump(mode="json", exclude_defaults=True))
        return Facts(f"{self.task}: {model} with {self.start.mechanism}, seed {self.seed}", rows=rows)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that affects the result, as plain data."""
        config = self.model_dump(mode="json", exclude=WITHOUT_EFFECT)
        if self.figure_at == "last":  # as in the folders of runs from before there was a choice
            del config["figure_at"]
        return config

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read the output of `config`; anything else, such as the config.json of a model, is an error."""
        try:
            return cls.model_validate(dict(config))
        except ValidationError as error:
            raise TrainingError(
                f"this config.json does not describe a run of this version of attnlab ({describe_error(error, cls)}); "
                "it belongs to a model or to another version: give the folder of a run"
            ) from error


def find_run_folder(path: str) -> tuple[Path, bool] | None:
    """Return the run folder at a path, and whether it ends in `:best`; None if it is not a run folder."""
    name, mark, which = path.rpartition(":")
    folder = expand_path(name if mark and which in ("best", "last") else path)
    return (folder, which == "best" and bool(mark)) if (folder / "checkpoints").is_dir() else None


def list_differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """List every path at which two records differ, with both values."""
    differences = []
    for key in dict.fromkeys([*one, *other]):
        mine, theirs = (_as_mapping(value.get(key)) for value in (one, other))
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            differences += list_differences(mine, theirs, f"{prefix}{key}.")
        elif mine != theirs:
            differences.append(f"{prefix}{key} ({mine!r}, there {theirs!r})")
    return differences


def list_paths(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    """List every value inside mappings and lists with its path, as `--set` writes it."""
    values = _as_mapping(values)
    if not isinstance(values, Mapping):
        return [(prefix, str(values))]
    return [row for key, value in values.items() for row in list_paths(value, f"{prefix}.{key}".lstrip("."))]


def _as_mapping(value: Any) -> Any:
    return {str(place): entry for place, entry in enumerate(value)} if isinstance(value, list) else value
