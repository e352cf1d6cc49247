"""Which arm is ahead while a study runs: plain means without a test, which would be an undeclared look."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from attnlab.tasks.scores import LOWER_IS_BETTER

from .study_folder import Record

LOSS = "training loss"
SO_FAR = "so far; no verdict before the end"


@dataclass(frozen=True)
class Rank:
    """One arm: the mean of its seeds, and their number."""

    arm: str
    mean: float
    num_seeds: int

    def __str__(self) -> str:
        return f"{self.arm} {self.mean:.4g} ({self.num_seeds} seed{'s' * (self.num_seeds != 1)})"


@dataclass(frozen=True)
class Leaderboard:
    """The arms of one phase and size, the best first.

    figure: the primary metric, or the training loss before any run has ended. apart: arms that are not compared
    because they see the future.
    """

    phase: str
    size: str
    figure: str
    places: tuple[Rank, ...]
    apart: tuple[str, ...] = ()

    @property
    def leader(self) -> str | None:
        """The arm that is ahead; None if there is only one arm, or the first two are equal."""
        if len(self.places) < 2 or self.places[0].mean == self.places[1].mean:
            return None
        return self.places[0].arm

    @property
    def sentence(self) -> str:
        """The leaderboard in one sentence."""
        if not self.places:
            return ""
        leading = f"{self.leader} leads; " if self.leader is not None else ""
        apart = f"; not compared, since they see the future: {', '.join(self.apart)}" if self.apart else ""
        return f"{self.phase}, {self.size}: {leading}mean {self.figure}: {', '.join(map(str, self.places))}{apart}"


def rank_arms(record: Record, losses: Mapping[str, float | None]) -> list[Leaderboard]:
    """Rank the arms in every phase and size that has begun. losses: of the running runs, by id."""
    places = ((phase.name, size) for phase in record.design.phases for size in record.design.sizes)
    boards = [_rank_arms_in(record, phase, size, losses) for phase, size in places]
    return [board for board in boards if board.places]


def _rank_arms_in(record: Record, phase: str, size: str, losses: Mapping[str, float | None]) -> Leaderboard:
    table = record.table(phase, size)
    metric = table.metric
    values_by_arm: dict[str, list[float]] = {}
    for arm, runs in table.runs.items():
        values = [losses.get(run.id) for run in runs.values()] if metric is None else table.values(arm, metric).values()
        if finite := [value for value in values if value is not None and math.isfinite(value)]:
            values_by_arm[arm] = finite
    apart = tuple(arm for arm in values_by_arm if arm in record.obstacles)
    ranks = [Rank(arm, fmean(values), len(values)) for arm, values in values_by_arm.items() if arm not in apart]
    is_lower_better = metric is None or metric in LOWER_IS_BETTER
    ranks.sort(key=lambda rank: rank.mean if is_lower_better else -rank.mean)
    return Leaderboard(phase, size, metric or LOSS, tuple(ranks), apart)
