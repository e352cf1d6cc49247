"""Horizons: every compared phase becomes one phase for each total number of steps, `pretrain@1000`, `pretrain@2000`.

Each is trained from the start with its own schedule, on segments in the proportions of the file. Only the longest has
`smallest` and so a verdict; the others are for the trend. A phase that starts from one with horizons starts from the
longest, so that the length of one training varies at a time.
"""

from collections.abc import Sequence
from fractions import Fraction

from attnlab.training.spec import Segment

from .addresses import AT, strip_horizon
from .design import Design, Phase


def expand_horizons(design: Design) -> Design:
    """Return a study in which every phase that is compared has its horizons; the same study without horizons."""
    if design.horizons is None:
        return design
    longest, phases = design.horizons[-1], list[Phase]()
    expanded = {phase.name for phase in design.phases if phase.smallest is not None}
    for phase in design.phases:
        after = f"{phase.after}{AT}{longest}" if phase.after in expanded else phase.after
        if phase.name not in expanded:
            phases.append(phase.replace(after=after))
            continue
        for steps in design.horizons:
            smallest, target = (phase.smallest, phase.target) if steps == longest else (None, None)
            segments = scale_segments(phase.segments, steps)
            name = f"{phase.name}{AT}{steps}"
            phases.append(phase.replace(name=name, after=after, segments=segments, smallest=smallest, target=target))
    # The parts are valid, and so is the whole; the mechanisms need not be read again.
    return design.model_copy(update={"phases": phases})


def scale_segments(segments: Sequence[Segment], steps: int) -> tuple[Segment, ...]:
    """Return segments with a total of `steps`, in their proportions; one alone may be given in epochs."""
    if len(segments) == 1:
        return (segments[0].replace(steps=steps, epochs=None),)
    total, done, scaled = sum(segment.steps or 0 for segment in segments), 0, []
    for at, segment in enumerate(segments):
        end = round(Fraction(sum(each.steps or 0 for each in segments[: at + 1]) * steps, total))
        end = min(max(end, done + 1), steps - (len(segments) - 1 - at))
        scaled.append(segment.replace(steps=end - done))
        done = end
    return tuple(scaled)


def find_horizon(phase: Phase) -> int | None:
    """Return the horizon of a phase; None if it has none."""
    return int(phase.name.partition(AT)[2]) if AT in phase.name else None


def find_phase(design: Design, name: str) -> Phase:
    """Return the compared phase that a name of the study file stands for: of several horizons the longest."""
    return [phase for phase in design.phases if name in phase.names][-1]


def list_compared(design: Design) -> list[str]:
    """List the phases that are compared, by their names in the study file."""
    return [strip_horizon(phase.name) for phase in design.phases if phase.smallest is not None]
