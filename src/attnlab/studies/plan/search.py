"""The search of a study: which values are tried for an arm, on which seeds, and which of them its run gets.

All arms of a phase, size and seed have the same number of trials. A trial that has no score counts as the worst.
"""

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import fmean
from typing import Any, Self

from ..file.design import SearchSettings

HALVING = 3
"""One of so many points is kept after each rung of successive halving, and trained so many times as long."""
MAX_EXTENSIONS = 4
"""Times that a grid goes on."""
WORST = -math.inf
Values = Mapping[str, Any]
"""A point of a grid: a value for each path."""
Grid = Mapping[str, Sequence[Any]]
Scores = Mapping[str, float]
"""Scores of trials that have ended, by the run's id; higher is better, and a trial without a score has WORST."""


@dataclass(frozen=True)
class Trial:
    """What a run made for tuning tries.

    seed: the seed of the study whose run it is made for; None if the values are for all seeds. share: of the steps of
    that run.
    """

    values: Values
    seed: int | None
    share: Fraction = Fraction(1)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"values": dict(self.values), "seed": self.seed, "share": str(self.share)}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read the output of `record`."""
        return cls(record["values"], record["seed"], Fraction(record["share"]))

    @property
    def point(self) -> str:
        """Its values as text, which equal values share; a value may be a list, as betas are."""
        return json.dumps(dict(self.values))

    @property
    def title(self) -> str:
        """Its values, to show."""
        shown = ", ".join(f"{where.rpartition('.')[2]} {show_value(value)}" for where, value in self.values.items())
        return shown if self.share == 1 else f"{shown}, {self.share} of the steps"


def show_value(value: Any) -> str:
    """Write a value of a grid."""
    return f"{value:g}" if type(value) is float else str(value)


def derive_seed(seed: int | None, number: int, taken: Sequence[int]) -> int:
    """Return the seed of a trial: a hash, so that more seeds of the study leave it as it is, and none of theirs."""
    return hash_seed(f"trial {number} of seed {seed}", taken)


def hash_seed(text: str, taken: Sequence[int]) -> int:
    """Return the hash of a text as a seed that is not taken."""
    for attempt in range(len(taken) + 1):
        again = f"{text}{f' again {attempt}' if attempt else ''}"
        derived = int.from_bytes(hashlib.sha256(again.encode()).digest()[:4]) >> 1
        if derived not in taken:
            return derived
    raise AssertionError("more hashes are taken than there are seeds")


def list_points(grid: Grid, num: int | None, seed: int | None) -> list[Values]:
    """List the points of a grid, or as many of them, drawn by the seed: the same places in the grid of every arm."""
    points: list[Values] = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if num is None or num >= len(points):
        return points
    return [points[place] for place in sorted(random.Random(f"points of seed {seed}").sample(range(len(points)), num))]


@dataclass
class ArmSearch:
    """The trials of one arm for one run. find_runs: returns the runs of a trial."""

    grid: dict[str, list[Any]]
    search: SearchSettings
    seed: int | None
    find_runs: Callable[[Trial], Sequence[Any]]

    def list_trials(self, scores: Scores | None) -> tuple[list[Trial], Values | None]:
        """Return the trials so far, and the values that were chosen; None while a trial has no score.

        The values are empty if no trial has one. Without scores, the first points count as the best.
        """
        points, trials = list_points(self.grid, self.search.trials, self.seed), list[Trial]()
        chosen: Values = {}
        for share in list_shares(len(points)) if self.search.halve else [Fraction(1)]:
            rung = [Trial(values, self.seed, share) for values in points]
            trials += rung
            ranked = [(0.0, values) for values in points] if scores is None else self._rank(rung, scores)
            if ranked is None:
                return trials, None
            points = [values for _, values in ranked[: math.ceil(len(points) / HALVING)]]
            chosen = points[0] if ranked[0][0] > WORST else {}
        return trials, chosen

    def _rank(self, trials: Sequence[Trial], scores: Scores) -> list[tuple[float, Values]] | None:
        """Return the points by their mean score, the best first; None if one is missing."""
        ids = [[run.id for run in self.find_runs(trial)] for trial in trials]
        if any(run not in scores for runs in ids for run in runs):
            return None
        equal: dict[float, list[Values]] = {}
        for trial, runs in zip(trials, ids, strict=True):
            equal.setdefault(fmean(scores[run] for run in runs), []).append(trial.values)
        ranked = sorted(equal.items(), reverse=True)
        return [(mean, values) for mean, points in ranked for values in self._start_in_middle(points)]

    def _start_in_middle(self, points: Sequence[Values]) -> list[Values]:
        """Order points with equal scores from the middle outwards: the first would be at an edge without a reason."""
        ordered = sorted(points, key=self._locate)
        places = sorted(range(len(ordered)), key=lambda place: abs(2 * place - (len(ordered) - 1)))
        return [ordered[place] for place in places]

    def _locate(self, values: Values) -> list[Any]:
        """Return the place of a point in the grid: its numbers, and the positions of other values."""
        known = self.grid.items()
        return [
            values[where] if type(values[where]) in (int, float) else grid.index(values[where]) for where, grid in known
        ]


def list_shares(num_points: int) -> list[Fraction]:
    """Return the share of the steps in each rung of successive halving; the last rung chooses one point."""
    num_rungs = max(1, math.ceil(math.log(num_points, HALVING) - 1e-9))
    return [Fraction(1, HALVING ** (num_rungs - rung)) for rung in range(num_rungs)]


def find_edges(values: Values, grid: Grid) -> list[tuple[str, int]]:
    """Return the paths whose chosen value is the smallest (−1) or largest (1) of its numbers."""
    edges = []
    for where, value in values.items():
        known = grid[where]
        if len(known) < 2 or not all(type(one) in (int, float) for one in known):
            continue
        if value in (min(known), max(known)):
            edges.append((where, 1 if value == max(known) else -1))
    return edges


def extend_grid(grid: Grid, where: str, side: int) -> dict[str, list[Any]]:
    """Return a grid with one more value beyond its smallest (−1) or largest (1), in the ratio of the last two."""
    known = sorted(grid[where], reverse=side > 0)
    nearest, next_one = known[:2]
    new = float(f"{nearest * nearest / next_one:.3g}")
    if all(type(value) is int for value in known):
        new = max(1, round(new))
    if new in known:  # a whole number that cannot go below 1
        return {path: list(values) for path, values in grid.items()}
    return {path: [*values, new] if path == where else list(values) for path, values in grid.items()}


def count_trials(search: SearchSettings, grid: Grid) -> int:
    """Return the number of trials for one run of one arm, without extensions."""
    num = math.prod(len(values) for values in grid.values())
    num = num if search.trials is None else min(num, search.trials)
    total = num
    for _ in list_shares(num)[1:] if search.halve else ():
        num = math.ceil(num / HALVING)
        total += num
    return total * search.seeds_per_trial


def search_together(
    searches: Mapping[str, ArmSearch], scores: Scores | None
) -> Iterator[tuple[str, list[Trial], Values | None]]:
    """Yield the trials and the choice of every arm; grids go on for all arms if the best value of one is at an edge.

    While a grid may go on, no arm has a choice before all have: the last one may extend the grid of the others.
    """
    is_extended = scores is not None and any(one.search.extend for one in searches.values())
    for _ in range(MAX_EXTENSIONS if is_extended else 0):
        chosen = {arm: one.list_trials(scores)[1] for arm, one in searches.items()}
        if any(values is None for values in chosen.values()):
            break
        edges = {edge for arm, values in chosen.items() for edge in find_edges(values or {}, searches[arm].grid)}
        if not edges:
            break
        for one, (where, side) in product(searches.values(), sorted(edges)):
            one.grid = extend_grid(one.grid, where, side)
    outcomes = {arm: one.list_trials(scores) for arm, one in searches.items()}
    is_waiting = is_extended and any(values is None for _, values in outcomes.values())
    for arm, (trials, values) in outcomes.items():
        yield arm, trials, None if is_waiting else values
