"""What runs logged, as points of curves: losses, evaluations, traces. Long curves are thinned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from attnlab.charts.curves import Point
from attnlab.studies.answers.study_folder import Record

from .results import PhaseResults, read_number

MOST_STEPS, FEWEST_STEPS = 150, 12
MOST_POINTS = 4000
"""Of one chart: many arms and seeds have fewer steps each, so that a page stays small."""
MOST_FIGURES = 6
NO_FIGURES = {"kind", "step", "task", "primary", "collapse", "missing", "name"}
WHOLE = ""
"""The layer of what belongs to the whole model."""

Line = Mapping[str, Any]
Lines = dict[tuple[str, int], list[dict[str, Any]]]
"""By arm and seed."""


@dataclass(frozen=True)
class History:
    """The lines of one phase and size, by kind, arm and seed."""

    record: Record
    place: PhaseResults
    known: dict[str, Lines] = field(default_factory=dict)
    """What was read already."""

    def read_lines(self, kind: str) -> Lines:
        """Return the lines of one kind, by arm and seed; runs without any are left out."""
        if kind not in self.known:
            own = [run for run in self.record.runs if (run.phase, run.size) == (self.place.phase, self.place.size)]
            read = {(run.arm, run.seed): self.record.ledger.lines(run.id, kind) for run in own}
            self.known[kind] = {key: lines for key, lines in read.items() if lines}
        return self.known[kind]

    def make_points(self, kind: str, value: Callable[[Line], float | None]) -> list[Point]:
        """Return a value of every line as points, at so many steps as a chart has room for."""
        lines = self.read_lines(kind)
        steps = thin_steps({line["step"] for some in lines.values() for line in some}, len(lines))
        return [
            Point(self.name_arm(arm), seed, line["step"], _round_value(found))
            for (arm, seed), some in lines.items()
            for line in some
            if line["step"] in steps and (found := value(line)) is not None
        ]

    def name_arm(self, arm: str) -> str:
        """Name an arm, with a warning where it cannot be compared."""
        return f"{arm} (not comparable)" if arm in self.record.obstacles else arm

    def list_figures(self) -> list[str]:
        """List the figures of evaluations that vary, the deciding one first."""
        seen: dict[str, set[float]] = {self.place.figure: set()} if self.place.figure else {}
        for some in self.read_lines("evaluation").values():
            for line in some:
                for name in line.keys() - NO_FIGURES:
                    if is_number(line[name]) and (value := read_number(line[name])) is not None:
                        seen.setdefault(name, set()).add(value)
        others = sorted(name for name, values in seen.items() if len(values) > 1 and name != self.place.figure)
        return [*([self.place.figure] if self.place.figure else []), *others][:MOST_FIGURES]

    def find_traces(self) -> dict[str, dict[str, str]]:
        """Return the kinds of what was traced, each with its layers and their names in a line."""
        found: dict[str, dict[str, str]] = {}
        for some in self.read_lines("trace").values():
            for line in some[-1:]:
                for name in line.keys() - NO_FIGURES:
                    layer, _, kind = name.rpartition(".")
                    found.setdefault(kind, {})[layer or WHOLE] = name
        return {
            kind: dict(sorted(layers.items(), key=lambda one: split_natural(one[0]))) for kind, layers in found.items()
        }


def thin_steps(steps: Iterable[int], num_curves: int) -> set[int]:
    """Choose steps from first to last, so many as a chart with so many curves has room for."""
    found = sorted(steps)
    most = min(MOST_STEPS, max(FEWEST_STEPS, MOST_POINTS // max(1, num_curves)))
    if len(found) <= most:
        return set(found)
    return {found[round(number * (len(found) - 1) / (most - 1))] for number in range(most)}


def make_averager(names: Sequence[str]) -> Callable[[Line], float | None]:
    """Return what takes the mean of a line's values under several names, over layers and heads."""

    def take(line: Line) -> float | None:
        values = [value for name in names if name in line for value in _make_list(line[name])]
        numbers = [number for value in values if (number := read_number(value)) is not None]
        return read_number(fmean(numbers)) if numbers else None

    return take


def _make_list(value: Any) -> list[Any]:
    """Return one value a head, or one alone, as a list."""
    return value if isinstance(value, list) else [value]


def is_number(value: Any) -> bool:
    """Tell whether a ledger's value is a number, also one that is spelled out."""
    return isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity")


def _round_value(value: float) -> float:
    """Keep five digits, which is more than a curve shows."""
    return float(f"{value:.5g}") if math.isfinite(value) else value


def split_natural(name: str) -> list[tuple[bool, int, str]]:
    """Order names with numbers in them as a person does."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in name.split(".")]
