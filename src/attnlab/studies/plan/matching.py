"""Arms made equal before training: the steps, or the setting of its model, with which an arm costs what the baseline
costs. What a run costs is counted or measured once per study (`cost/matching.py`) and kept in the ledger, so that the
ids of runs do not change when a study is resumed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import StudyError

from ..file.design import CONFIG, Arm, Match, Phase
from ..file.match_consistency import BY_STEPS

Place = tuple[str, str, str]
"""Phase, size and arm."""
TOLERANCES: Mapping[str, float] = {"operations": 0.01, "seconds": 0.01, "parameters": 0.005, "state": 0.01}
"""The largest relative difference to the baseline that counts as equal."""


@dataclass(frozen=True)
class RunCount:
    """What one run costs: its updates by segment, and its model."""

    num_steps: tuple[int, ...]
    operations: tuple[float, ...]
    """Of an update, in each segment."""
    num_parameters: int
    state: int
    """Numbers that decoding keeps for a sequence of the evaluation length."""
    seconds: tuple[float, ...] = ()
    """Of an update, in each segment; empty if nothing was timed."""
    config: Mapping[str, int] = field(default_factory=dict)
    """Settings of the model's config that were chosen."""

    def total(self, match: Match) -> float:
        """Return how much of something the whole run, or its model, has."""
        if match == "parameters":
            return self.num_parameters
        if match == "state":
            return self.state
        per_update = {"operations": self.operations, "seconds": self.seconds}.get(match, [1.0] * len(self.num_steps))
        return sum(steps * cost for steps, cost in zip(self.num_steps, per_update, strict=True))

    def operations_until(self, step: float) -> float:
        """Return the operations of the first updates; part of an update counts as that part."""
        total = 0.0
        for num, operations in zip(self.num_steps, self.operations, strict=True):
            total += min(step, num) * operations
            step = max(0.0, step - num)
        return total


@dataclass(frozen=True)
class Matching:
    """What the runs of a study cost, as matched, by phase, size and arm."""

    match: Match = "steps"
    counts: Mapping[Place, RunCount] = field(default_factory=dict)
    processor: str = ""
    """What seconds were measured on."""
    basis: str = ""
    """A hash of the runs that were counted."""

    def apply(self, phase: Phase, arm: Arm, place: Place) -> tuple[Phase, Arm]:
        """Return a phase with the steps, and an arm with the config, that were chosen for a place."""
        count = self.counts.get(place)
        if count is None:
            return phase, arm
        if self.match in BY_STEPS:
            pairs = zip(phase.segments, count.num_steps, strict=True)
            segments = tuple(segment.replace(steps=num, epochs=None) for segment, num in pairs)
            phase = phase.replace(segments=segments)
        chosen = {f"{CONFIG}{name}": value for name, value in count.config.items()}
        return phase, arm.replace(set={**arm.set, **chosen}) if chosen else arm

    def describe(self, place: Place, baseline: str) -> Iterator[str]:
        """Yield what makes an arm equal to the baseline, with the totals of both."""
        ours, theirs = self.counts.get(place), self.counts.get((*place[:2], baseline))
        if self.match == "steps" or ours is None or theirs is None:
            return
        arm, match = place[2], self.match
        first, second = (describe_total(match, count.total(match)) for count in (ours, theirs))
        if match in BY_STEPS:
            steps = [f"{sum(count.num_steps):,}" for count in (ours, theirs)]
            yield f"{arm} trains {steps[0]} steps ({first}) and {baseline} {steps[1]} ({second})"
        else:
            settings = ", ".join(f"{name} = {value}" for name, value in ours.config.items())
            yield f"{arm}{f' with {settings}' if settings else ''} has {first} and {baseline} {second}"
        if match == "seconds":
            times = [count.total(match) / sum(count.num_steps) for count in (ours, theirs)]
            yield (
                f"an update of {arm} takes {times[0]:.3g} s and one of {baseline} {times[1]:.3g} s, measured before "
                f"training on {self.processor}; another machine may give other steps"
            )
        if ours.config:
            yield f"weights of {arm} that have another shape than the baseline's do not start equal"


def scale_steps(steps: Sequence[int], of_baseline: Sequence[float], of_arm: Sequence[float]) -> tuple[int, ...]:
    """Return the steps of each segment with which an arm costs as much as the baseline, by the cost of an update."""
    costs = zip(steps, of_baseline, of_arm, strict=True)
    return tuple(max(1, round(num * baseline / arm)) for num, baseline, arm in costs)


def check_equal(match: Match, baseline: RunCount, arm: RunCount, name: str) -> None:
    """Refuse an arm that does not cost what the baseline costs."""
    ours, theirs = arm.total(match), baseline.total(match)
    if abs(ours / theirs - 1) <= TOLERANCES[match]:
        return
    advice = {
        "parameters": "give a model whose feed-forward layers are larger",
        "state": "change the length, the number of heads or the mechanism",
    }.get(match, "give the phase more steps, of which a whole number comes closer")
    raise StudyError(
        f"{name}: {describe_total(match, ours)} is the closest to the baseline's {describe_total(match, theirs)}, and "
        f'match = "{match}" allows {100 * TOLERANCES[match]:g} %; {advice}'
    )


def describe_total(match: Match, total: float) -> str:
    """Write how much of something a run has."""
    if match == "state":
        return f"a state of {total:,.0f} numbers"
    if match == "operations":
        return f"{total:.4g} operations"
    return f"{total:.4g} s of updates" if match == "seconds" else f"{total:,.0f} {match}"
