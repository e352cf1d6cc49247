"""Power analysis of a study: seeds that detect the smallest effect of interest, from a pilot's spread.

Only the spread of the pilot's paired differences is used, never their mean, so planning is not a look. The level is the
strictest at which the study decides a comparison: alpha shared by all comparisons (Holm's first step), and the limit of
the last look if looks are declared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from attnlab.statistics import Noise, Question, compare, detectable_effect, look_limits, seeds_needed
from attnlab.statistics.formatting import plain
from attnlab.statistics.planning import at_upper_bound
from attnlab.statistics.question import Scale
from attnlab.tasks.scores import LOG_FIGURES

from ..file.design import Design, Phase
from .analysis import count_comparisons
from .study_folder import Record

MIN_SEEDS_FOR_SPREAD = 2
"""Seeds of a pilot from which a spread can be estimated."""


@dataclass(frozen=True)
class Aim:
    """Power and false-positive rate that a study aims at."""

    powers: Sequence[float] = (0.8, 0.9)
    alpha: float = 0.05


@dataclass(frozen=True)
class Prospect:
    """The seeds that one comparison needs, and the effects that the study's seeds detect.

    num_declared: seeds of the study. num_pilot: seeds that the spread was estimated from; 0 if it was given. sd: of the
    paired difference. sd_bound: the SD that the plan uses, the pilot's upper bound or the given one. seeds: by power; ∞
    if no number suffices. detectable: effects that the declared seeds detect, by power. obstacle: why there is no plan.
    On the log scale smallest, SDs and effects are in percent.
    """

    phase: str
    size: str
    arm: str
    smallest: float
    level: float
    num_declared: int
    scale: Scale = "linear"
    figure: str = ""
    num_pilot: int = 0
    sd: float = math.nan
    sd_bound: float = math.nan
    seeds: dict[float, float] = field(default_factory=dict)
    detectable: dict[float, float] = field(default_factory=dict)
    obstacle: str = ""

    @property
    def question(self) -> Question:
        """The threshold and scale of the comparison."""
        return Question(self.smallest, scale=self.scale)

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        by_power = {"seeds": self.seeds, "detectable": self.detectable}
        named = {name: {f"{power:g}": value for power, value in values.items()} for name, values in by_power.items()}
        return dict(plain({**vars(self), **named}))


def find_level(design: Design, alpha: float) -> float:
    """Return the strictest level at which a study decides a comparison."""
    level = alpha / max(1, count_comparisons(design))
    return look_limits(design.looks, level)[design.looks[-1]] if isinstance(design.looks, list) else level


def plan_seeds(design: Design, pilot: Record | float, aim: Aim) -> list[Prospect]:
    """Plan every comparison of a study from a pilot, or from the SD of a paired difference."""
    level, prospects = find_level(design, aim.alpha), []
    for phase in (phase for phase in design.phases if phase.smallest is not None):
        for size in design.sizes:
            scale = _find_scale(phase, size, pilot)
            for arm in design.tested_arms:
                smallest = float(phase.smallest or 0.0)
                blank = Prospect(phase.name, size, arm, smallest, level, len(design.seeds), scale)
                if isinstance(pilot, Record):
                    prospects.append(_plan_from_pilot(blank, design, phase, pilot, aim))
                else:
                    spread = math.log1p(pilot / 100) if scale == "log" else pilot
                    prospects.append(_plan_with(blank, Noise(spread**2, math.inf), aim, sd=pilot))
    return prospects


def _find_scale(phase: Phase, size: str, pilot: Record | float) -> Scale:
    metric = pilot.table(phase.name, size).metric if isinstance(pilot, Record) else None
    if metric is None:
        # Imported here because a pilot whose runs have ended is read without torch.
        from attnlab.tasks import load as load_task

        metric = load_task(phase.task, **phase.task_settings).primary
    return "log" if metric in LOG_FIGURES else "linear"


def _plan_from_pilot(blank: Prospect, design: Design, phase: Phase, pilot: Record, aim: Aim) -> Prospect:
    obstacle = _explain_mismatch(blank, design, phase, pilot)
    if obstacle:
        return replace(blank, obstacle=obstacle)
    table = pilot.table(phase.name, blank.size)
    arms, metric = (design.baseline, blank.arm), table.metric or ""
    seeds = table.shared_seeds(*arms, metric=metric)
    blank = replace(blank, figure=metric)
    if len(seeds) < MIN_SEEDS_FOR_SPREAD:
        count = f"{len(seeds)} {'seed has' if len(seeds) == 1 else 'seeds have'} ended in both arms"
        return replace(blank, obstacle=f"{count}; a spread needs at least {MIN_SEEDS_FOR_SPREAD}, better 3 to 5")
    if unpaired := table.explain_unpaired(*arms, seeds):
        return replace(blank, obstacle=unpaired)
    blank = replace(blank, num_pilot=len(seeds))
    for answer in pilot.answers if design is pilot.design else ():
        is_same = (answer.phase, answer.size, answer.arm) == (blank.phase, blank.size, blank.arm)
        if is_same and answer.comparison is not None and answer.comparison.decision.is_decided:
            return replace(blank, obstacle=f"decided: {answer.verdict}; no more seeds are needed")
    measured = table.measure(arms, metric)
    # A seed that has not ended in one arm is neither a pair nor a failure.
    first, second = ({seed: measured.tables[arm][seed] for seed in seeds} for arm in arms)
    noise = compare(first, second, clusters=measured.clusters, scale=measured.scale).estimate.noise
    if not noise.per_seed > 0:
        blank = replace(blank, obstacle="every pair of seeds differs by the same: the pilot has no spread to plan from")
    return _plan_with(blank, at_upper_bound(noise), aim, sd=blank.question.to_difference(math.sqrt(noise.per_seed)))


def _explain_mismatch(blank: Prospect, design: Design, phase: Phase, pilot: Record) -> str:
    tasks = {phase.name: phase.task for phase in pilot.design.phases}
    if phase.name not in tasks or blank.size not in pilot.design.sizes:
        return "the pilot has no such phase and size"
    if tasks[phase.name] != phase.task:
        return f"'{phase.name}' is {tasks[phase.name]} in the pilot, and {phase.task} in the study"
    for arm in (design.baseline, blank.arm):
        if arm not in pilot.design.arms:
            return f"the pilot has no arm '{arm}'"
        if pilot.design.arms[arm].mechanism != design.arms[arm].mechanism:
            return f"'{arm}' is {pilot.design.arms[arm].mechanism} in the pilot"
        if arm in pilot.obstacles:
            return pilot.obstacles[arm] if arm == blank.arm else f"{arm}: {pilot.obstacles[arm]}"
    return ""


def _plan_with(blank: Prospect, noise: Noise, aim: Aim, *, sd: float) -> Prospect:
    if noise.per_seed <= 0:
        return replace(blank, sd=sd, sd_bound=0.0)
    question, level = blank.question, blank.level
    seeds = {power: seeds_needed(noise, question.threshold, power, level) for power in aim.powers}
    effects = {power: detectable_effect(noise, blank.num_declared, power, level) for power in aim.powers}
    detectable = {power: question.to_difference(effect) for power, effect in effects.items()}
    bound = question.to_difference(math.sqrt(noise.per_seed))
    return replace(blank, sd=sd, sd_bound=bound, seeds=seeds, detectable=detectable)


def estimate_seed_time(record: Record) -> tuple[int, float] | None:
    """Return the number of runs of one more seed, and their seconds in sequence; None if a time is unknown.

    A run takes the time from its last start to its end, and at least the seconds that its updates add up to.
    """
    durations = record.ledger.durations()
    shared = {phase.name for phase in record.design.phases if phase.is_shared}
    kinds: dict[tuple[str, str, str], list[float]] = {}
    for run in (run for run in record.runs if run.phase not in shared):
        times = kinds.setdefault((run.phase, run.size, run.arm), [])
        if run.id in durations:
            times.append(max(durations[run.id], float(record.results[run.id].result.get("seconds") or 0.0)))
    return (len(kinds), sum(map(fmean, kinds.values()))) if kinds and all(kinds.values()) else None
