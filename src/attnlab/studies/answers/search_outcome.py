"""What the search of a study tried and chose in one phase and size, and whether the best values lie inside the grid."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Any, Self

from attnlab.training.plain import decode_nonfinite

from ..ledger.database import ResultRow
from ..plan.planning import PlannedRun
from ..plan.search import find_edges, show_value

AS_TUNED = "AS TUNED ({} trials)"
AT_EDGE = "BASELINE AT THE EDGE OF ITS GRID"


@dataclass(frozen=True)
class CurvePoint:
    """A value that was tried, the mean figure of its trials, and how often it was chosen."""

    value: Any
    mean: float | None
    """None if no trial has a figure."""
    num_trials: int
    num_chosen: int


@dataclass(frozen=True)
class SearchOutcome:
    """The trials of one phase and size, and the runs that got the values they chose."""

    trials: Sequence[PlannedRun]
    runs: Sequence[PlannedRun]

    @classmethod
    def select(cls, phase: str, size: str, trials: Sequence[PlannedRun], runs: Sequence[PlannedRun]) -> Self:
        """Select those of one phase and size."""
        return cls(*([run for run in group if (run.phase, run.size) == (phase, size)] for group in (trials, runs)))

    @property
    def num_trials(self) -> int:
        """The number of points that were tried for a run; 0 without a search."""
        points: dict[Any, set[str]] = {}
        for run in self.trials:
            if run.trial is not None:
                points.setdefault((run.arm, run.trial.seed), set()).add(run.trial.point)
        return max((len(tried) for tried in points.values()), default=0)

    def describe(self, baseline: str) -> str:
        """Return the condition of a verdict; empty without a search."""
        if not self.trials:
            return ""
        words = AS_TUNED.format(self.num_trials)
        return f"{words}, {AT_EDGE}" if self.list_edges(baseline) else words

    def list_notes(self, arms: Sequence[str]) -> Iterator[str]:
        """Yield what was chosen for each of some arms, and which of them would rather have other values."""
        for arm in arms if self.trials else ():
            counts: Counter[str] = Counter()
            for run in self.runs:
                if run.arm == arm and run.chosen and not run.obstacle:
                    counts[", ".join(f"{where} {show_value(value)}" for where, value in run.chosen.items())] += 1
            if counts:
                whose = "for all seeds" if self._is_shared(arm) else "{} of {}"
                choices = "; ".join(f"{what} ({whose.format(num, counts.total())})" for what, num in counts.items())
                yield f"chosen for {arm}: {choices}"
            for where, side in self.list_edges(arm):
                end = "largest" if side > 0 else "smallest"
                yield f"the best {where} of {arm} is the {end} that was tried; extend = true tries more"

    def _is_shared(self, arm: str) -> bool:
        """Tell whether all seeds of an arm have the same trials."""
        return all(run.trial.seed is None for run in self.trials if run.trial is not None and run.arm == arm)

    def list_edges(self, arm: str) -> list[tuple[str, int]]:
        """Return the settings whose chosen value is the smallest (−1) or largest (1) in more than half of the runs."""
        runs = [run for run in self.runs if run.arm == arm and run.chosen and not run.obstacle]
        grid = {where: self._list_values(arm, where) for run in runs for where in run.chosen}
        counts = Counter(edge for run in runs for edge in find_edges(run.chosen, grid))
        return [edge for edge, number in counts.items() if 2 * number > len(runs)]

    def _list_values(self, arm: str, where: str) -> list[Any]:
        """Return the values of a setting that were tried: numbers in their order, then all others."""
        values = {json.dumps(value): value for _, value in self._list_trial_values(arm, where)}.values()
        return sorted(values, key=lambda one: (0, one) if type(one) in (int, float) else (1, str(one)))

    def _list_trial_values(self, arm: str, where: str) -> list[tuple[PlannedRun, Any]]:
        """Return the trials of an arm, each with its value of a setting."""
        return [(run, run.trial.values[where]) for run in self.trials if run.trial is not None and run.arm == arm]

    @property
    def settings(self) -> list[str]:
        """The paths of the settings that were searched."""
        return list(dict.fromkeys(where for run in self.trials if run.trial is not None for where in run.trial.values))

    @property
    def shared_length(self) -> Fraction:
        """The share of the steps for which every value was tried; below 1 if halving trained only some for longer."""
        return min((run.trial.share for run in self.trials if run.trial is not None), default=Fraction(1))

    def draw_curve(self, arm: str, where: str, results: Mapping[str, ResultRow]) -> list[CurvePoint]:
        """Return the mean figure against the values of a setting, over all trials of the shared length."""
        chosen = [run.chosen.get(where) for run in self.runs if run.arm == arm and not run.obstacle]
        tried = [(run, value) for run, value in self._list_trial_values(arm, where) if self._has_shared_length(run)]
        points = []
        for value in self._list_values(arm, where):
            rows = [results.get(run.id) for run, other in tried if other == value]
            lasts = [row.result["last"] for row in rows if row is not None and row.result.get("last")]
            figures = [float(decode_nonfinite(last["figures"])[last["primary"]]) for last in lasts]
            points.append(CurvePoint(value, fmean(figures) if figures else None, len(rows), chosen.count(value)))
        return points

    def _has_shared_length(self, run: PlannedRun) -> bool:
        return run.trial is not None and run.trial.share == self.shared_length
