"""What a study can hope to see: seeds that detect the smallest effect of interest, from a pilot's spread.

The pilot gives the spread of paired differences and never the difference itself, so that planning is no look. The level
is the strictest at which the study decides a comparison: alpha shared by all its comparisons (Holm's first step), and
the limit of the last look where looks are declared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attnlab.statistics import Noise, Question, compare, detectable_effect, look_limits, seeds_needed
from attnlab.statistics.account import plain
from attnlab.statistics.planning import at_upper_bound
from attnlab.statistics.question import Scale
from attnlab.tasks.scores import LOG_FIGURES

from ..file.design import Design, Phase
from .analysis import count_comparisons
from .study_folder import Record

FEWEST = 2
"""Seeds of a pilot below which there is no spread."""


@dataclass(frozen=True)
class Aim:
    """How sure a study wants to be."""

    powers: Sequence[float] = (0.8, 0.9)
    alpha: float = 0.05


@dataclass(frozen=True)
class Prospect:
    """What can be hoped for of one arm, in one phase and size."""

    phase: str
    size: str
    arm: str
    smallest: float
    level: float
    num_declared: int
    """Seeds of the study."""
    scale: Scale = "linear"
    """On the log scale smallest, SD and detectable differences are in percent."""
    figure: str = ""
    num_pilot: int = 0
    """Seeds that the spread was taken from; 0 where it was given."""
    sd: float = math.nan
    """Of the paired difference."""
    sd_bound: float = math.nan
    """What is planned with: the pilot's upper bound, or the SD that was given."""
    seeds: dict[float, float] = field(default_factory=dict)
    """Those needed, by power; ∞ where no number does."""
    detectable: dict[float, float] = field(default_factory=dict)
    """What the declared seeds detect, by power."""
    obstacle: str = ""
    """Why there is nothing to plan from."""

    @property
    def question(self) -> Question:
        """What the comparison is asked."""
        return Question(self.smallest, scale=self.scale)

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        by_power = {name: {f"{power:g}": one for power, one in getattr(self, name).items()} for name in BY_POWER}
        found: dict[str, Any] = plain({**vars(self), **by_power})
        return found


BY_POWER = ("seeds", "detectable")


def level_of(design: Design, alpha: float) -> float:
    """Return the strictest level at which a study decides a comparison."""
    own = alpha / max(1, count_comparisons(design))
    return look_limits(design.looks, own)[design.looks[-1]] if isinstance(design.looks, list) else own


def prospects(design: Design, pilot: Record | float, aim: Aim) -> list[Prospect]:
    """Plan every comparison of a study from a pilot, or from the SD of a paired difference."""
    found = []
    for phase in (one for one in design.phases if one.smallest is not None):
        for size in design.sizes:
            for arm in (one for one in design.arms if one != design.baseline):
                smallest = float(phase.smallest or 0.0)
                blank = Prospect(
                    phase.name,
                    size,
                    arm,
                    smallest,
                    level_of(design, aim.alpha),
                    len(design.seeds),
                    scale_of(phase, size, pilot),
                )
                if isinstance(pilot, Record):
                    found.append(from_pilot(blank, design, phase, pilot, aim))
                else:
                    spread = math.log1p(pilot / 100) if blank.scale == "log" else pilot
                    noise = Noise(spread**2, math.inf)
                    found.append(plan_with(blank, noise, aim, sd=pilot))
    return found


def scale_of(phase: Phase, size: str, pilot: Record | float) -> Scale:
    """Return the scale on which a phase's deciding figure is compared: as the pilot's runs have it, else its task."""
    figure = pilot.evidence(phase.name, size).figure() if isinstance(pilot, Record) else None
    if figure is None:
        # Imported here because a pilot whose runs have ended is read without torch.
        from attnlab.tasks import load as load_task

        figure = load_task(phase.task, **phase.task_settings).primary
    return "log" if figure in LOG_FIGURES else "linear"


def decided_in(pilot: Record, blank: Prospect) -> str:
    """Return the verdict of a study that is its own pilot, where more seeds would change nothing."""
    for answer in pilot.answers:
        place = (answer.phase, answer.size, answer.arm)
        if place == (blank.phase, blank.size, blank.arm) and answer.comparison is not None:
            return answer.verdict if answer.comparison.decision.is_decided else ""
    return ""


def from_pilot(blank: Prospect, design: Design, phase: Phase, pilot: Record, aim: Aim) -> Prospect:
    """Plan one comparison from a pilot, or say why it gives nothing to plan from."""
    obstacle = misfit(blank, design, phase, pilot)
    if obstacle:
        return replace(blank, obstacle=obstacle)
    evidence = pilot.evidence(phase.name, blank.size)
    figure, arms = evidence.figure() or "", (design.baseline, blank.arm)
    values = [evidence.values(arm, figure) for arm in arms]
    both = [seed for seed, value in values[0].items() if value is not None and values[1].get(seed) is not None]
    if len(both) < FEWEST:
        few = f"{len(both)} {'seed has' if len(both) == 1 else 'seeds have'} ended in both arms"
        return replace(blank, figure=figure, obstacle=f"{few}; a spread needs at least {FEWEST}, better 3 to 5")
    unpaired = evidence.unpaired(*arms, both)
    if unpaired:
        return replace(blank, figure=figure, obstacle=unpaired)
    if design is pilot.design and (verdict := decided_in(pilot, blank)):
        return replace(
            blank, figure=figure, num_pilot=len(both), obstacle=f"decided: {verdict}; no more seeds are needed"
        )
    measured = evidence.measure(arms, figure)
    # A seed that one arm has not come to yet is no pair, and no failure.
    first, second = ({seed: measured.tables[arm][seed] for seed in both} for arm in arms)
    noise = compare(first, second, clusters=measured.clusters, scale=measured.scale).estimate.noise
    bound = at_upper_bound(noise)
    found = plan_with(blank, bound, aim, sd=blank.question.to_difference(math.sqrt(noise.per_seed)))
    same = (
        "" if bound.per_seed > 0 else "every pair of seeds differs by the same: the pilot shows no spread to plan from"
    )
    return replace(found, figure=figure, num_pilot=len(both), obstacle=same)


def misfit(blank: Prospect, design: Design, phase: Phase, pilot: Record) -> str:
    """Say why a pilot is none of this comparison, or nothing where it is."""
    phases = {one.name: one for one in pilot.design.phases}
    if phase.name not in phases or blank.size not in pilot.design.sizes:
        return "the pilot has no such phase and size"
    if phases[phase.name].task != phase.task:
        return f"'{phase.name}' is {phases[phase.name].task} in the pilot, and {phase.task} in the study"
    for arm in (design.baseline, blank.arm):
        if arm not in pilot.design.arms:
            return f"the pilot has no arm '{arm}'"
        if pilot.design.arms[arm].mechanism != design.arms[arm].mechanism:
            return f"'{arm}' is {pilot.design.arms[arm].mechanism} in the pilot"
        if arm in pilot.obstacles:
            return f"of '{arm}', {pilot.obstacles[arm]}"
    return ""


def plan_with(blank: Prospect, noise: Noise, aim: Aim, *, sd: float) -> Prospect:
    """Plan one comparison with the noise that is expected, which is on the scale of the analysis."""
    if noise.per_seed <= 0:
        return replace(blank, sd=sd, sd_bound=0.0)
    question = blank.question
    seeds = {power: seeds_needed(noise, question.threshold, power, blank.level) for power in aim.powers}
    effects = {
        power: question.to_difference(detectable_effect(noise, blank.num_declared, power, blank.level))
        for power in aim.powers
    }
    bound = question.to_difference(math.sqrt(noise.per_seed))
    return replace(blank, sd=sd, sd_bound=bound, seeds=seeds, detectable=effects)


def seconds_of_a_seed(record: Record) -> tuple[int, float] | None:
    """Return the runs that one more seed has, and what they take one after the other; None where a time is not known.

    A run took from its last start to its end, and at least the seconds that its own updates count up over all starts.
    """
    took = dict(record.ledger.do(
        "SELECT results.run, results.at - attempts.at FROM results JOIN attempts ON results.attempt = attempts.number"
    ).fetchall())  # fmt: skip
    num, total = 0, 0.0
    for times in times_by_kind(record, took):
        if not times:
            return None
        num, total = num + 1, total + sum(times) / len(times)
    return (num, total) if num else None


def times_by_kind(record: Record, took: dict[str, float]) -> Iterator[list[float]]:
    """Yield the times of the runs of each phase, size and arm that a seed has a run of."""
    shared = {phase.name for phase in record.design.phases if phase.is_shared}
    kinds: dict[tuple[str, str, str], list[float]] = {}
    for run in record.runs:
        if run.phase in shared:
            continue
        times = kinds.setdefault((run.phase, run.size, run.arm), [])
        if run.id in took:
            times.append(max(took[run.id], float(record.results[run.id].result.get("seconds") or 0.0)))
    yield from kinds.values()
