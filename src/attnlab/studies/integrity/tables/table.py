"""A result table as runs and values, independent of the layout of its file."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self, TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")
Run = tuple[str, str, str]
"""Arm, group and seed."""
Statistic = Literal["mean", "sd", "se", "spread"]
"""What a figure says of seeds; a spread may be an SD, a standard error or half an interval."""


@dataclass(frozen=True)
class Cell:
    """One recorded value, its run, and its place in the file. `value` is None if the run failed.

    num_examples: the number of evaluation examples behind the value, None if unknown. sd, num_seeds: of a cell that is
    the mean of several seeds, where the table gives them. sd_text: the spread as written, whatever its kind.
    """

    arm: str
    group: str
    metric: str
    seed: str
    step: float | None
    value: float | None
    text: str
    place: str
    num_examples: int | None = None
    sd: float | None = None
    num_seeds: int | None = None
    sd_text: str = field(default="", compare=False)

    @property
    def is_mean(self) -> bool:
        """Whether the value is the mean of several seeds."""
        return self.sd is not None or self.num_seeds is not None

    @cached_property
    def run(self) -> Run:
        """The run it belongs to."""
        return self.arm, self.group, self.seed

    @property
    def number(self) -> float:
        """The value of a cell that is known to have one."""
        assert self.value is not None
        return self.value

    @property
    def title(self) -> str:
        """Arm, group and metric in words."""
        return join_words(self.arm, self.group, self.metric)


@dataclass(frozen=True)
class RunPredictions:
    """The predictions of one run in order, and the labels if they are known."""

    arm: str
    group: str
    seed: str
    predictions: tuple[str, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatedSummary:
    """A mean or a spread that stands in the row of the seeds it summarises, and their values.

    rounding: half of the last digit of the seeds, which may have been rounded after they were summarised.
    """

    title: str
    metric: str
    statistic: Statistic
    text: str
    place: str
    values: tuple[float, ...]
    rounding: float = 0.0


@dataclass(frozen=True)
class AveragedScore:
    """A score that an average may be over: its column or task, and whether it stands on the left of the average."""

    name: str
    text: str
    value: float
    is_left: bool


@dataclass(frozen=True)
class StatedAverage:
    """An average over tasks that stands in the table: its column or row, whose it is, and the scores beside it."""

    name: str
    title: str
    text: str
    value: float
    place: str
    scores: tuple[AveragedScore, ...]


@dataclass(frozen=True)
class StatedDifference:
    """A difference that stands in the table: its column or row, whose it is, and what it should be.

    source: what it is the difference of, in words. excess: how far it is off, in units of what rounding explains.
    """

    name: str
    title: str
    text: str
    place: str
    source: str
    expected: float
    excess: float


@dataclass(frozen=True)
class ResultTable:
    """All cells of a table. layout: how the file was read, in words. budgets: tokens, epochs and the like, by run.

    mapping: the `--map` that reads it as it was read. has_seeds: whether the table names the seeds of its runs.
    unused: columns of numbers beside columns of arms that are not read as scores. stated: means and SDs beside seeds.
    averages: averages over tasks. differences: those that could be checked.
    """

    name: str
    layout: tuple[str, ...]
    cells: tuple[Cell, ...]
    baseline: str
    budgets: Mapping[Run, Mapping[str, str]] = field(default_factory=dict)
    predictions: tuple[RunPredictions, ...] = ()
    mapping: str = ""
    has_seeds: bool = True
    unused: tuple[str, ...] = ()
    stated: tuple[StatedSummary, ...] = ()
    averages: tuple[StatedAverage, ...] = ()
    differences: tuple[StatedDifference, ...] = ()

    @cached_property
    def values(self) -> tuple[Cell, ...]:
        """The cells that have a value."""
        return tuple(cell for cell in self.cells if cell.value is not None)

    @property
    def arms(self) -> list[str]:
        """The names of the arms, the baseline first."""
        arms = dict.fromkeys(cell.arm for cell in self.cells)
        return sorted(arms, key=lambda arm: arm != self.baseline)

    @property
    def groups(self) -> list[str]:
        """What is compared separately, such as sizes or datasets; one empty name if there are no groups."""
        return list(dict.fromkeys(cell.group for cell in self.cells))

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(dict.fromkeys(cell.metric for cell in self.cells))

    @cached_property
    def steps(self) -> list[float | None]:
        """The steps that have a value, in order."""
        return sorted({cell.step for cell in self.values}, key=order_step)

    def up_to(self, step: float | None) -> Self:
        """Return the table without later steps."""
        if step is None:
            return self
        return replace(self, cells=tuple(cell for cell in self.cells if cell.step is None or cell.step <= step))

    def with_num_examples(self, number: int | None) -> Self:
        """Return the table with a number of evaluation examples that replaces its own; the same if None."""
        if number is None:
            return self
        return replace(self, cells=tuple(replace(cell, num_examples=number) for cell in self.cells))

    def without(self, cells: Collection[Cell]) -> Self:
        """Return the table without some cells."""
        dropped = set(cells)
        return replace(self, cells=tuple(cell for cell in self.cells if cell not in dropped))


def group_cells(cells: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Collect cells, or what belongs to them, that share a key."""
    groups: dict[Key, list[Item]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def order_step(step: float | None) -> float:
    """Return the sort key of a step; None sorts first."""
    return -1.0 if step is None else step


def show_step(step: float | None) -> str:
    """Write a step; a table without steps has one."""
    return "the table" if step is None else f"step {step:g}"


def join_words(*words: str) -> str:
    """Join the words that are not empty."""
    return " ".join(filter(None, words))
