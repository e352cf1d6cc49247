"""What `python -m benchmarks` prints: one cost beside a peer's, with a target where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from attnlab.kernels.comparison import Setting
from attnlab.kernels.measure import Measurement, show_bytes, show_seconds, three_digits

Quantity = Literal["time", "memory", "speed"]
NOTHING = "–"
COLUMNS = ("what", "quantity", "own", "peer's", "peer", "own against peer's", "target", "met")


@dataclass(frozen=True)
class Target:
    """A bound on the ratio: at most so many times the peer's, so many times less, or at least a share of it."""

    bound: float
    is_less: bool = False
    is_share: bool = False

    def __str__(self) -> str:
        if self.is_share:
            return f"≥ {100 * self.bound:g} %"
        return f"≥ {self.bound:g}× less" if self.is_less else f"≤ {self.bound:g}×"


def at_most(bound: float) -> Target:
    """Ask for no more than so many times the peer's cost."""
    return Target(bound)


def less_by(bound: float) -> Target:
    """Ask for a cost so many times less than the peer's, or even less."""
    return Target(bound, is_less=True)


def share_of(bound: float) -> Target:
    """Ask for at least a share of the peer's speed."""
    return Target(bound, is_share=True)


@dataclass(frozen=True)
class Row:
    """One cost beside a peer's: seconds or bytes; or a speed, operations per second."""

    what: str
    quantity: Quantity
    own: float
    peer: str
    other: float
    target: Target | None = None

    @property
    def ratio(self) -> float:
        """The cost in peers, or where it is to be less, the peer's cost in ours."""
        return self.other / self.own if self.is_less else self.own / self.other

    @property
    def is_less(self) -> bool:
        """Whether to count how many times less the cost is: as the target does, else where it is less."""
        if self.quantity == "speed":
            return False
        return self.own < self.other if self.target is None else self.target.is_less

    @property
    def is_met(self) -> bool:
        """Whether the target is kept; true where there is none."""
        if self.target is None:
            return True
        is_least = self.is_less or self.target.is_share
        return self.ratio >= self.target.bound if is_least else self.ratio <= self.target.bound

    def cells(self) -> tuple[str, ...]:
        """Write the row under COLUMNS."""
        show = {"time": show_seconds, "memory": show_bytes, "speed": show_speed}[self.quantity]
        ratio = f"{three_digits(self.ratio)}×{' less' * self.is_less}"
        if self.quantity == "speed":
            ratio = f"{100 * self.ratio:.0f} %"
        verdict = (str(self.target), "✓" if self.is_met else "✗") if self.target else (NOTHING, NOTHING)
        return (self.what, self.quantity, show(self.own), show(self.other), self.peer, ratio, *verdict)


def show_speed(speed: float) -> str:
    """Write operations per second."""
    return f"{three_digits(speed / 1e9)} GFLOP/s"


@dataclass(frozen=True)
class Table:
    """What was measured, the rows as cells, what is to be said besides, and how many targets were missed."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())
    num_missed: int = 0


def compared(title: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> Table:
    """Make a table of comparisons."""
    missed = sum(not row.is_met for row in rows)
    return Table(title, COLUMNS, [row.cells() for row in rows], notes, missed)


def time_row(what: str, own: Measurement, peer: str, other: Measurement, target: Target | None = None) -> Row:
    """Set a time beside a peer's."""
    return Row(what, "time", own.seconds, peer, other.seconds, target)


def memory_row(what: str, own: Measurement, peer: str, other: Measurement, target: Target | None = None) -> Row:
    """Set a peak of extra memory beside a peer's."""
    return Row(what, "memory", own.memory, peer, other.memory, target)


def sizes(setting: Setting, length: int) -> str:
    """Say in words what was computed."""
    causal = "causal" if setting.causal else "not causal"
    heads = f"{setting.num_heads} heads of {setting.head_dim}"
    return f"{causal}, batch {setting.batch}, {heads}, length {length}"
