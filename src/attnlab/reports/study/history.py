"""What runs logged, as points of curves: losses, evaluations, traces. Long curves are thinned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from attnlab.charts.curves import Point
from attnlab.studies.answers.study_folder import Record

from .results import PhaseResults, read_number

MAX_STEPS, MIN_STEPS = 150, 12
MAX_POINTS = 4000
"""Of one chart: with many arms and seeds each has fewer steps, so that a page stays small."""
MAX_FIGURES = 6
NO_FIGURES = {"kind", "step", "task", "primary", "collapse", "missing", "name"}
WHOLE = ""
"""The layer of a quantity of the whole model."""

MetricRow = Mapping[str, Any]
Lines = dict[tuple[str, int], list[dict[str, Any]]]
"""By arm and seed."""


@dataclass(frozen=True)
class History:
    """The lines of one phase and size, by kind, arm and seed."""

    record: Record
    place: PhaseResults
    known: dict[str, Lines] = field(default_factory=dict)
    """Cached lines, by kind."""

    def read_lines(self, kind: str) -> Lines:
        """Return the lines of one kind, by arm and seed; runs without any are omitted."""
        if kind not in self.known:
            place, ledger = (self.place.phase, self.place.size), self.record.ledger
            self.known[kind] = {
                (run.arm, run.seed): lines
                for run in self.record.runs
                if (run.phase, run.size) == place and (lines := ledger.lines(run.id, kind))
            }
        return self.known[kind]

    def make_points(self, kind: str, value: Callable[[MetricRow], float | None]) -> list[Point]:
        """Return a value of every line as points, at as many steps as a chart can show."""
        lines = self.read_lines(kind)
        names = {arm: self._name_arm(arm) for arm, _ in lines}
        steps = thin_steps({line["step"] for some in lines.values() for line in some}, len(lines))
        return [
            Point(names[arm], seed, line["step"], float(f"{number:.5g}"))  # more digits than a curve shows
            for (arm, seed), some in lines.items()
            for line in some
            if line["step"] in steps and (number := value(line)) is not None
        ]

    def list_unfinished(self) -> list[str]:
        """List the arms, as curves name them, that gained over half of `smallest` in the last fifth of training."""
        place, smallest = self.place, self.place.smallest
        if smallest is None:
            return []
        table = self.record.table(place.phase, place.size)
        gains = {row.arm: table.late_gain(row.arm, place.figure) for row in place.rows}
        return [self._name_arm(arm) for arm, gain in gains.items() if gain is not None and gain > smallest / 2]

    def _name_arm(self, arm: str) -> str:
        return f"{arm} (not comparable)" if arm in self.record.obstacles else arm

    def list_figures(self) -> list[str]:
        """List the figures of evaluations that vary, the primary one first."""
        seen: dict[str, set[float]] = {self.place.figure: set()} if self.place.figure else {}
        for some in self.read_lines("evaluation").values():
            for line in some:
                for name in line.keys() - NO_FIGURES:
                    if is_number(line[name]) and (value := read_number(line[name])) is not None:
                        seen.setdefault(name, set()).add(value)
        others = sorted(name for name, values in seen.items() if len(values) > 1 and name != self.place.figure)
        return [*([self.place.figure] if self.place.figure else []), *others][:MAX_FIGURES]

    def find_traces(self) -> dict[str, dict[str, str]]:
        """Return the traced kinds, each with its layers and their names in a line."""
        kinds: dict[str, dict[str, str]] = {}
        for some in self.read_lines("trace").values():
            for line in some[-1:]:
                for name in line.keys() - NO_FIGURES:
                    layer, _, kind = name.rpartition(".")
                    kinds.setdefault(kind, {})[layer or WHOLE] = name
        return {
            kind: {name: layers[name] for name in sorted(layers, key=split_natural)} for kind, layers in kinds.items()
        }


def thin_steps(steps: Iterable[int], num_curves: int) -> set[int]:
    """Choose evenly spaced steps, as many as a chart with this number of curves can show."""
    ordered = sorted(steps)
    most = min(MAX_STEPS, max(MIN_STEPS, MAX_POINTS // max(1, num_curves)))
    if len(ordered) <= most:
        return set(ordered)
    return {ordered[round(number * (len(ordered) - 1) / (most - 1))] for number in range(most)}


def make_averager(names: Sequence[str]) -> Callable[[MetricRow], float | None]:
    """Return a function that averages the values of a line under several names, over layers and heads."""

    def take(line: MetricRow) -> float | None:
        values = [line[name] if isinstance(line[name], list) else [line[name]] for name in names if name in line]
        numbers = [number for heads in values for value in heads if (number := read_number(value)) is not None]
        return read_number(fmean(numbers)) if numbers else None

    return take


def is_number(value: Any) -> bool:
    """Whether a value of a ledger is a number, including one that is spelled out."""
    return isinstance(value, int | float) or value in ("NaN", "Infinity", "-Infinity")


def split_natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts names with numbers in natural order."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in name.split(".")]
