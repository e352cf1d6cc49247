"""A result table as runs and values, whatever its file looked like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True)
class Cell:
    """One recorded value: whose it is, and where it stands. `value` is None where a run has none."""

    arm: str
    group: str
    metric: str
    seed: str
    step: float | None
    value: float | None
    text: str
    place: str

    @property
    def run(self) -> tuple[str, str, str]:
        """The run it belongs to: arm, group and seed."""
        return self.arm, self.group, self.seed


@dataclass(frozen=True)
class Answers:
    """What one run predicted, in order, and what was right where that is known."""

    arm: str
    group: str
    seed: str
    predictions: tuple[str, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultTable:
    """All cells of a table. layout: how it was read, in words. budgets: what else a run was given, by run.

    num_examples: of metrics that count right answers, among how many, where that is known.
    """

    name: str
    layout: tuple[str, ...]
    cells: tuple[Cell, ...]
    baseline: str
    budgets: Mapping[tuple[str, str, str], Mapping[str, str]] = field(default_factory=dict)
    answers: tuple[Answers, ...] = ()
    num_examples: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def values(self) -> tuple[Cell, ...]:
        """The cells that have a value."""
        return tuple(cell for cell in self.cells if cell.value is not None)

    @property
    def arms(self) -> list[str]:
        """The names of the arms, the baseline first."""
        others = dict.fromkeys(cell.arm for cell in self.cells if cell.arm != self.baseline)
        return [self.baseline, *others] if any(cell.arm == self.baseline for cell in self.cells) else list(others)

    @property
    def groups(self) -> list[str]:
        """What is compared apart, such as sizes; one empty name where nothing is."""
        return list(dict.fromkeys(cell.group for cell in self.cells))

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(dict.fromkeys(cell.metric for cell in self.cells))

    @cached_property
    def steps(self) -> list[float | None]:
        """The steps at which anything was recorded, in order."""
        found = {cell.step for cell in self.values}
        return sorted(found, key=lambda step: -1.0 if step is None else step)

    def of_metric(self, metric: str) -> list[float]:
        """Return all values of a metric."""
        return [value_of(cell) for cell in self.values if cell.metric == metric]

    def at(self, step: float | None) -> list[Cell]:
        """Return the cells of one step."""
        return [cell for cell in self.cells if cell.step == step]


def grouped(cells: Iterable[Cell], key: Callable[[Cell], Key]) -> dict[Key, list[Cell]]:
    """Gather cells by what they have in common."""
    found: dict[Key, list[Cell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def value_of(cell: Cell) -> float:
    """Return the value of a cell that is known to have one."""
    assert cell.value is not None
    return cell.value


def show_step(step: float | None) -> str:
    """Write a step; a table without steps has one."""
    return "the table" if step is None else f"step {step:g}"
