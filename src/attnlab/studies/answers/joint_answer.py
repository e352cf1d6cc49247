"""Answers about several sizes, horizons or tasks of a study, and what they are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from attnlab.notebook import Facts, Showable
from attnlab.statistics.formatting import percent, plain, show_p, signed
from attnlab.statistics.verdict import NOT_COMPARABLE

from ..file.design import Design
from ..ledger.database import Ledger, ResultRow
from ..plan.planning import PlannedRun
from .registration import RegistrationStatus
from .run_table import RunTable

if TYPE_CHECKING:
    from attnlab.statistics import Comparison

    from .analysis import Answer

JointKind = Literal["trend", "horizons", "conclusion"]
QUANTITIES: Mapping[str, str] = {
    "trend": "per doubling of parameters", "horizons": "per doubling of steps", "conclusion": "× smallest",
}  # fmt: skip
"""What the number of each kind of answer is."""


@dataclass(frozen=True)
class JointPoint:
    """The difference at one size or horizon, or in one task, with its interval; place: parameters or steps."""

    name: str
    place: float | None
    difference: float
    interval: tuple[float, float]
    num_seeds: int


@dataclass(frozen=True, repr=False)
class JointAnswer(Showable):
    """The answer for one arm over sizes, horizons or tasks; without a value if nothing could be tested.

    value: the slope per doubling, in units of the figure or in percent, or the mean of difference/smallest. line: the
    fitted difference at the first and the last point. without: the mean without each task.
    """

    kind: JointKind
    arm: str
    phase: str
    size: str
    """Of a trend, all sizes."""
    figure: str
    verdict: str
    reason: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None
    level: float | None = None
    p: float | None = None
    smallest: float | None = None
    unit: str = ""
    method: str = ""
    points: tuple[JointPoint, ...] = ()
    line: tuple[float, float] | None = None
    without: tuple[JointPoint, ...] = ()
    notes: tuple[str, ...] = ()
    registration: str = ""

    @property
    def place(self) -> str:
        """The arm, phases and sizes in words."""
        return f"{self.arm}, {self.phase}, {self.size}"

    @property
    def numbers(self) -> str:
        """The value with its interval; empty if there is none."""
        if self.value is None or self.interval is None:
            return ""
        low, high = map(signed, self.interval)
        return f"{signed(self.value)}{self.unit} [{low}, {high}]{self.unit} {QUANTITIES[self.kind]}"

    def facts(self) -> Facts:
        """Return the verdict, its reason, and the difference at each point."""
        rows = [(point.name, f"{signed(point.difference)}{self.unit}") for point in self.points]
        rows += [("note", note) for note in self.notes]
        if self.value is not None and self.p is not None and self.level is not None:
            rows.insert(0, ("value", f"{self.numbers}, {percent(1 - self.level)}, {show_p(self.p)} ({self.method})"))
        return Facts(self.place, f"{self.verdict}: {self.reason}", rows=rows)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        points = {name: [vars(point) for point in getattr(self, name)] for name in ("points", "without")}
        return dict(plain({**vars(self), **points, "quantity": QUANTITIES[self.kind]}))


@dataclass(frozen=True)
class JointData:
    """A study whose arms have been compared in every phase and size."""

    study: Design
    planned: Sequence[PlannedRun]
    ledger: Ledger
    answers: Sequence[Answer]
    status: RegistrationStatus

    @cached_property
    def results(self) -> Mapping[str, ResultRow]:
        """The results of the runs that have ended, by id."""
        return self.ledger.results()

    @property
    def arms(self) -> list[str]:
        """The arms that are compared with the baseline."""
        return self.study.tested_arms

    def table(self, phase: str, size: str) -> RunTable:
        """Return the runs of one phase and size."""
        return RunTable.select((phase, size), self.study.arms, self.planned, self.results, self.ledger)

    def find(self, phase: str, size: str, arm: str) -> Answer:
        """Return the answer of one arm in one phase and size."""
        return next(one for one in self.answers if (one.phase, one.size, one.arm) == (phase, size, arm))


def explain_unusable(answer: Answer, comparison: Comparison | None) -> str:
    """Return why a comparison says nothing about a mechanism, so that nothing can be built on it; empty if it does."""
    # Imported here, since scipy takes half a second.
    from attnlab.statistics.arm_data import explain_degenerate, explain_floor

    if comparison is None or comparison.question.obstacle:
        head, tail = NOT_COMPARABLE.split("{}")
        return answer.verdict.removeprefix(head).removesuffix(tail)
    if explain_floor(*comparison.data.moments, comparison.question):
        return "neither arm learned the task"
    return explain_degenerate(comparison.estimate, comparison.data)
