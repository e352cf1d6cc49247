"""A study as data: arms, sizes, phases, seeds, as a TOML file or Python states them. Unknown settings are errors.

The settings of models, data and training are those of `attnlab.training.spec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, field_validator, model_validator

from attnlab.errors import AttnlabError
from attnlab.training.spec import (
    DataSource,
    Model,
    Name,
    PlainSettings,
    Positive,
    Section,
    Start,
    TaskSettings,
    Text,
    TokenizerChoice,
)  # fmt: skip

from .consistency import choose_entries, find_misfits


def _check_looks(looks: Any) -> Any:
    if looks is None or looks == "open":
        return looks
    is_whole = isinstance(looks, list) and all(type(look) is int and 2 <= look <= 1000 for look in looks)
    if not is_whole or not looks or any(later <= earlier for earlier, later in pairwise(looks)):
        raise ValueError('looks are numbers of seeds that grow, such as [5, 10, 15, 20], or "open"')
    return looks


IS_RECORDED = "is_recorded"
"""Marks a design that is read from a ledger, where stages of the user's own need not be known."""
CONFIG = "config."
"""Begins the path of a setting of the model."""


def _normalize_line(line: str, info: ValidationInfo) -> str:
    """Return a line as its mechanism writes it."""
    if info.context is not None and info.context.get(IS_RECORDED):
        return line
    # Imported here because a recorded design is read without torch.
    from attnlab.mechanisms import Mechanism

    try:
        return str(Mechanism.parse(line))
    except AttnlabError as error:
        raise ValueError(str(error)) from error


Line = Annotated[Text, AfterValidator(_normalize_line)]


class Arm(Section):
    """A mechanism, and the settings that differ where it is studied, by their paths as in `--set`."""

    mechanism: Line
    by_size: dict[Text, Line] = Field(default_factory=dict)
    """Another line where the model has another size, such as an α that goes with its width."""
    set: PlainSettings = Field(default_factory=dict)

    def line(self, size: str) -> str:
        """Return the mechanism in a model of some size."""
        return self.by_size.get(size, self.mechanism)

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the model's config that the arm changes."""
        return {where.removeprefix(CONFIG): value for where, value in self.set.items() if where.startswith(CONFIG)}


class Size(TokenizerChoice, Model):
    """A model: an architecture with new weights, or a checkpoint to start from."""

    def start(self, changes: Mapping[str, Any], line: str) -> Start:
        """Return what a run starts from. changes: settings of the model's config that an arm changes."""
        config = {**self.config, **changes}
        return Start(architecture=self.architecture, checkpoint=self.checkpoint, config=config, mechanism=line)


class Phase(TaskSettings):
    """One training of every run: pretraining, fine-tuning. A later one starts from an earlier one's weights."""

    name: Name
    data: Text
    """The name of a source."""
    after: Name | None = None
    """The phase whose weights this one starts from; None starts as the size says."""
    smallest: Positive | None = None
    """The smallest difference worth having, in units of the task's deciding figure; None compares nothing here."""
    is_shared: bool = False
    """Whether the first seed's training serves all seeds of an arm; seeds then vary only what comes after it."""


class Design(Section):
    """Arms, compared with a baseline over seeds that are paired."""

    name: Name
    question: Text = ""
    baseline: Name
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=1, max_length=1000)
    looks: Annotated[list[int] | Literal["open"] | None, PlainValidator(_check_looks)] = None
    """Numbers of seeds at which the study is looked at; "open" for after every seed, None for once at the end."""
    has_leaking: bool = False
    """Whether an arm whose audit finds a leak is trained too; it is never compared."""
    only_arms: list[Name] | None = None
    only_sizes: list[Name] | None = None
    """Those of the file that are taken, None for all: how a budget leaves some out."""
    arms: dict[Name, Arm] = Field(min_length=1, max_length=200)
    sizes: dict[Name, Size] = Field(min_length=1, max_length=50)
    data: dict[Name, DataSource] = Field(default_factory=dict)
    phases: list[Phase] = Field(min_length=1, max_length=20)

    @model_validator(mode="before")
    @classmethod
    def _choose_entries(cls, content: Any) -> Any:
        return choose_entries(content) if isinstance(content, dict) else content

    @field_validator("arms", mode="before")
    @classmethod
    def _expand_lines(cls, arms: Any) -> Any:
        """Accept a line alone as an arm."""
        if not isinstance(arms, dict):
            return arms
        return {name: {"mechanism": arm} if isinstance(arm, str) else arm for name, arm in arms.items()}

    @model_validator(mode="after")
    def _check_consistency(self) -> Design:
        wrong = find_misfits(self.model_dump())
        if wrong:
            raise ValueError("; ".join(f"{'.'.join(map(str, place))}: {why}" for place, why in wrong))
        return self
