"""Which arm is ahead while a study goes on: plain means, never a test, since that would be a look nobody declared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from attnlab.tasks.scores import LOWER_IS_BETTER

from .study_folder import Record

LOSS = "training loss"
SO_FAR = "so far; no verdict before the end"


@dataclass(frozen=True)
class Place:
    """One arm: the mean of its seeds, and how many they are."""

    arm: str
    mean: float
    num_seeds: int


@dataclass(frozen=True)
class Standing:
    """The arms of one phase and size, the best first."""

    phase: str
    size: str
    figure: str
    """The figure that decides, or the training loss before any run has ended."""
    places: tuple[Place, ...]
    apart: tuple[str, ...] = ()
    """Arms that are not compared, whatever they give: they see the future."""

    @property
    def is_of_losses(self) -> bool:
        """Whether no run of it has ended yet."""
        return self.figure == LOSS

    @property
    def leader(self) -> str | None:
        """The arm that is ahead; None where there is nobody to be ahead of, or two are level."""
        if len(self.places) < 2 or self.places[0].mean == self.places[1].mean:
            return None
        return self.places[0].arm

    @property
    def sentence(self) -> str:
        """What is said of it."""
        if not self.places:
            return ""
        shown = ", ".join(f"{place.arm} {place.mean:.4g} ({seeds(place.num_seeds)})" for place in self.places)
        leading = f"{self.leader} leads; " if self.leader is not None else ""
        apart = f"; not compared, since they see the future: {', '.join(self.apart)}" if self.apart else ""
        return f"{self.phase}, {self.size}: {leading}mean {self.figure}: {shown}{apart}"


def seeds(number: int) -> str:
    """Say a number of seeds."""
    return f"{number} seed{'s' * (number != 1)}"


def standings(record: Record, losses: Mapping[str, float | None]) -> list[Standing]:
    """Return how the arms stand in every phase and size that has begun. losses: of runs that are going, by id."""
    found = []
    for phase in record.design.phases:
        for size in record.design.sizes:
            standing = standing_of(record, phase.name, size, losses)
            if standing.places:
                found.append(standing)
    return found


def standing_of(record: Record, phase: str, size: str, losses: Mapping[str, float | None]) -> Standing:
    """Return how the arms of one phase and size stand: by figures of ended seeds, or by losses before there are any."""
    evidence = record.evidence(phase, size)
    figure = evidence.figure()
    means: dict[str, Sequence[float]] = {}
    for arm, runs in evidence.runs.items():
        if figure is not None:
            values = [value for value in evidence.values(arm, figure).values() if value is not None]
        else:
            going = [losses.get(run.id) for run in runs.values()]
            values = [value for value in going if value is not None and math.isfinite(value)]
        if values:
            means[arm] = values
    apart = tuple(arm for arm in means if arm in record.obstacles)
    places = [Place(arm, fmean(own), len(own)) for arm, own in means.items() if arm not in apart]
    is_lower_better = figure is None or figure in LOWER_IS_BETTER
    places.sort(key=lambda place: place.mean if is_lower_better else -place.mean)
    return Standing(phase, size, LOSS if figure is None else figure, tuple(places), apart)
