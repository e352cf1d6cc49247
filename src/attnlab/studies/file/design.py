"""A study as data: arms, sizes, phases, seeds. The settings of training are those of `attnlab.training.spec`."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, field_validator, model_validator

from attnlab.errors import AttnlabError
from attnlab.training import spec

from .addresses import strip_horizon
from .consistency import choose_entries, find_misfits
from .match_consistency import AA, BY_STEPS


def _check_looks(looks: Any) -> Any:
    if looks is None or looks == "open":
        return looks
    is_whole = isinstance(looks, list) and all(type(look) is int and 2 <= look <= 1000 for look in looks)
    if not is_whole or not looks or any(later <= earlier for earlier, later in pairwise(looks)):
        raise ValueError('looks are increasing numbers of seeds, such as [5, 10, 15, 20], or "open"')
    return looks


def _check_horizons(horizons: list[int]) -> list[int]:
    if any(later <= earlier for earlier, later in pairwise(horizons)):
        raise ValueError("horizons are increasing numbers of steps, such as [1000, 2000, 4000]")
    return horizons


IS_RECORDED = "is_recorded"
"""Marks a design that is read from a ledger: the user's own stages need not be registered."""
CONFIG = "config."
"""The prefix of the path of a setting of the model's config."""


def _normalize_line(line: str, info: ValidationInfo) -> str:
    if info.context is not None and info.context.get(IS_RECORDED):
        return line
    # Imported here because a recorded design is read without torch.
    from attnlab.mechanisms import parse_line

    try:
        return str(parse_line(line))
    except AttnlabError as error:
        raise ValueError(str(error)) from error


MechanismText = Annotated[spec.Text, AfterValidator(_normalize_line)]


Grid = Annotated[dict[spec.Text, Annotated[list[spec.Plain], Field(min_length=1, max_length=50)]], Field(max_length=5)]
"""Values to try, by the path of a setting."""


class Arm(spec.Section):
    """A mechanism, and the settings that differ from the phase's, by their paths as in `--set`."""

    mechanism: MechanismText
    by_size: dict[spec.Text, MechanismText] = Field(default_factory=dict)
    """Another line for a size, such as an α that depends on the width."""
    set: spec.PlainSettings = Field(default_factory=dict)
    over: Grid = Field(default_factory=dict)
    """Values of its own for settings of the search, as many as there: an optimizer has rates of its own."""

    def line(self, size: str) -> str:
        """Return the mechanism in a model of some size."""
        return self.by_size.get(size, self.mechanism)

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the model's config that the arm changes."""
        return {where.removeprefix(CONFIG): value for where, value in self.set.items() if where.startswith(CONFIG)}


class Size(spec.TokenizerChoice, spec.Model):
    """A model: an architecture with new weights, or a checkpoint to start from."""

    def start(self, changes: Mapping[str, Any], line: str) -> spec.Start:
        """Return what a run starts from. changes: settings of the model's config that an arm changes."""
        config = {**self.config, **changes}
        return spec.Start(architecture=self.architecture, checkpoint=self.checkpoint, config=config, mechanism=line)


PhaseName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*(@[1-9][0-9]*)?$", max_length=75)]
"""A name, with its horizon after an @ once the study is read."""
Horizons = Annotated[list[spec.Count], Field(min_length=2, max_length=10), AfterValidator(_check_horizons)]
"""Total numbers of steps with which every compared phase is trained, each from the start and with its own schedule."""


class Phase(spec.TaskSettings):
    """One training of every run: pretraining, fine-tuning. A later one starts from an earlier one's weights."""

    name: PhaseName
    data: spec.Text
    """The name of a source."""
    after: PhaseName | None = None
    """The phase whose weights this one starts from; None starts from the weights of the size."""
    smallest: spec.Positive | None = None
    """The smallest difference that matters, in units of the task's primary metric; None compares nothing."""
    is_shared: bool = False
    """Whether the training of the first seed is used for all seeds of an arm; seeds then vary later phases only."""
    target: Annotated[float, Field(gt=-1e300, lt=1e300, allow_inf_nan=False)] | None = None
    """A value of the task's primary metric: how long each arm takes to reach it, and whether its last figure does."""

    @property
    def names(self) -> list[str]:
        """The names by which settings address it: its own, and the one in the study file if it has a horizon."""
        return list(dict.fromkeys([self.name, strip_horizon(self.name)]))

    @property
    def is_compared(self) -> bool:
        """Whether its arms are compared, for a verdict or, at a shorter horizon, for a trend."""
        return self.smallest is not None or len(self.names) > 1


Match = Literal["steps", "operations", "seconds", "parameters", "state"]
"""What all arms have as much of: updates; operations or seconds of training; parameters; numbers kept for decoding."""


class SearchSettings(spec.Section):
    """Trials that choose values of some settings for each arm, on data and seeds that no verdict uses.

    A path without a phase applies to every phase that is compared.
    """

    over: Annotated[Grid, Field(min_length=1)]
    trials: spec.Count | None = None
    """Points of the grid that are tried, drawn at random and the same for all arms; None tries all."""
    seeds_per_trial: Annotated[int, Field(ge=1, le=100)] = 1
    split: Literal["tune"] = "tune"
    """What trials are evaluated on: `tune` of the data, or its last `num_tune` training examples."""
    repeat: Literal["seed", "once"] = "seed"
    """Whether each seed of the study has trials of its own. Tuning once for all seeds is cheaper, but its luck is then
    the same in every seed and no interval shows it: 7 to 27 % of the verdicts on equal arms are wrong."""
    halve: bool = False
    """Successive halving: all points are trained for a part of the steps, and a third of them for three times that."""
    extend: bool = False
    """Whether the grid goes on, for all arms, if the best value of an arm is its smallest or largest."""


class TrendSettings(spec.Section):
    """Asks whether differences shrink or grow with the size of the model."""

    over: Literal["parameters"] = "parameters"
    phases: Annotated[list[spec.Name], Field(min_length=1)] | None = None
    """The phases that are asked about; None for all that are compared."""
    smallest: spec.Positive | None = None
    """The smallest slope per doubling that matters, in units of the figure; None for `smallest` of the phase over the
    range of sizes."""


class ConclusionSettings(spec.Section):
    """Asks for one answer over several phases."""

    phases: Annotated[list[spec.Name], Field(min_length=2, max_length=20)]


class Design(spec.Section):
    """Arms, compared with a baseline over paired seeds."""

    name: spec.Name
    question: spec.Text = ""
    baseline: spec.Name
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=1, max_length=1000)
    looks: Annotated[list[int] | Literal["open"] | None, PlainValidator(_check_looks)] = None
    """Numbers of seeds at which the study is analyzed; "open" after every seed, None once at the end."""
    has_leaking: bool = False
    """Whether arms whose audit finds a leak are trained; they are never compared."""
    only_arms: list[spec.Name] | None = None
    only_sizes: list[spec.Name] | None = None
    """The arms and sizes of the file that are used, None for all: budgets choose some."""
    answered_by: spec.Text | None = None
    """In a budget that is only a smoke test: the budget that answers the question; None in any other."""
    arms: dict[spec.Name, Arm] = Field(min_length=1, max_length=200)
    sizes: dict[spec.Name, Size] = Field(min_length=1, max_length=50)
    data: dict[spec.Name, spec.DataSource] = Field(default_factory=dict)
    phases: list[Phase] = Field(min_length=1, max_length=20)
    search: SearchSettings | None = None
    trend: TrendSettings | None = None
    horizons: Horizons | None = None
    conclusion: ConclusionSettings | None = None
    match: Match = "steps"
    aa: bool = False
    """Whether the baseline is also compared with itself under other seeds, as an arm called `aa`."""

    @property
    def tested_arms(self) -> list[str]:
        """The arms that are compared with the baseline as one family."""
        return [name for name in self.arms if name != self.baseline and not self.is_aa(name)]

    @property
    def needs_costs(self) -> bool:
        """Whether what runs cost must be known before they are planned or analyzed."""
        return self.match != "steps" or any(phase.target is not None for phase in self.phases)

    @property
    def is_matched_by_steps(self) -> bool:
        """Whether the number of steps of each arm is chosen to make the arms equal."""
        return self.match in BY_STEPS

    def is_aa(self, arm: str) -> bool:
        """Tell whether an arm is the baseline under other seeds."""
        return self.aa and arm == AA

    @model_validator(mode="before")
    @classmethod
    def _choose_entries(cls, content: Any) -> Any:
        return choose_entries(content) if isinstance(content, dict) else content

    @field_validator("arms", mode="before")
    @classmethod
    def _expand_lines(cls, arms: Any) -> Any:
        """Accept a line alone as an arm."""
        entries = arms.items() if isinstance(arms, dict) else ()
        return {name: {"mechanism": arm} if isinstance(arm, str) else arm for name, arm in entries} or arms

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if misfits := find_misfits(self.model_dump()):
            raise ValueError("; ".join(f"{'.'.join(map(str, place))}: {why}" for place, why in misfits))
        return self
