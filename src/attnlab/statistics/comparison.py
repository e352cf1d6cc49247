"""The result of comparing two arms: estimate, deciding interval, verdict, and further figures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from .account import describe, record
from .effects import Effects
from .estimate import Estimate
from .exact import Exact, permutation, sign_flip
from .families import Adjusted
from .known import Known, explain_ceiling, explain_degenerate, explain_floor
from .notes import write_notes
from .planning import Plan, at_upper_bound, exaggeration_at, make_plan, more_seeds, power_at
from .question import ALPHA, Question
from .skewness import FEWEST_FOR_EXACT, few_seeds_factor, find_t_level
from .spread import Spread, measure_spread
from .verdict import (
    DEGENERATE,
    FEWEST_SEEDS,
    NEITHER_LEARNED,
    NOT_COMPARABLE,
    STILL_TRAINING,
    Evidence,
    Verdict,
    decide,
)  # fmt: skip
from .weighing import Weight, weigh


@dataclass(frozen=True)
class Comparison:
    """A variant compared with a baseline. Differences are variant − baseline, in units of the figure or in percent.

    estimate, weight: on the scale of the analysis, logs where the question says so. decision: the verdict with its
    reason. family: what being one of several comparisons does to p; None for a comparison by itself.
    """

    question: Question
    known: Known
    estimate: Estimate
    weight: Weight
    decision: Verdict
    family: Adjusted | None = None

    @property
    def difference(self) -> float:
        """The variant's mean less the baseline's; on the log scale the percent change."""
        return self.question.to_difference(self.estimate.difference)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that decides, at `level`."""
        return self._show(self.weight.interval)

    def interval_at(self, level: float) -> tuple[float, float]:
        """Return the interval at another level, such as 0.05 for 95 %; it does not decide."""
        return self._show(weigh(self.estimate, self.question, self.known, level).interval)

    def _show(self, interval: tuple[float, float]) -> tuple[float, float]:
        low, high = interval
        return self.question.to_difference(low), self.question.to_difference(high)

    @property
    def level(self) -> float:
        """The level of the deciding interval, after looks and the family."""
        return self.weight.level

    @property
    def p(self) -> float:
        """The p that decides: the verdict is a difference just if it is at most `level`."""
        return self.weight.p

    @property
    def method(self) -> str:
        """How interval and p were computed."""
        return self.weight.method

    @property
    def verdict(self) -> str:
        """What the evidence carries, in fixed words."""
        return self.decision.words

    @property
    def stability(self) -> str:
        """LESS STABLE, MORE STABLE or STABILITY UNKNOWN."""
        return self.known.steadiness.words

    @property
    def effects(self) -> Effects:
        """Hedges' g, how often a seed of the variant is above one of the baseline, and ρ."""
        return self.known.effects

    @property
    def rho(self) -> float:
        """The correlation of the arms over paired seeds; NaN without pairs."""
        return self.known.effects.rho

    @cached_property
    def exact(self) -> Exact | None:
        """A p that assumes no distribution, and the smallest that n allows; None if only summaries are known."""
        if self.known.arms is None:
            return None
        baseline, variant = (arm.per_seed for arm in self.known.arms)
        return sign_flip(variant - baseline) if self.known.paired else permutation(baseline, variant)

    @cached_property
    def spread(self) -> Spread:
        """The SD of each arm and their ratio, with intervals, on the scale of the analysis."""
        baseline, variant = ((side.moments()[1], side.n) for side in self.known.moments)
        return measure_spread(baseline, variant, self.rho if self.known.paired else None)

    @cached_property
    def plan(self) -> Plan:
        """How many seeds the smallest effect needs, what the present number can detect, and what would settle it."""
        show = self.question.to_difference
        noise, level = self.estimate.noise, self.question.final_level()
        plan = make_plan(noise, self.known.num_seeds, self.question.threshold, level)
        return replace(
            plan,
            smallest=float(self.question.smallest),
            sd=show(plan.sd),
            sd_bound=show(plan.sd_bound),
            detectable={power: show(effect) for power, effect in plan.detectable.items()},
            more=0.0 if self.decision.is_decided else self._more_seeds(),
        )

    def _more_seeds(self) -> float:
        # More seeds do not make arms comparable, give copied runs a spread, or train a run to its end.
        if self.decision.outcome in (NOT_COMPARABLE, DEGENERATE, NEITHER_LEARNED, STILL_TRAINING):
            return math.nan
        return settle(self.estimate, self.question, self.known)

    @cached_property
    def power_at_smallest(self) -> float:
        """How often so many seeds with this spread find a true difference of `smallest`; NaN if spread is unknown."""
        return power_at(self.estimate.se, self.estimate.df, self.question.threshold, self._level_of_t)

    @cached_property
    def exaggeration(self) -> float:
        """How many times too large the differences are that are found, if the true one is `smallest`."""
        return exaggeration_at(self.estimate.se, self.estimate.df, self.question.threshold, self._level_of_t)

    @property
    def _level_of_t(self) -> float:
        return find_t_level(self.level, self.estimate.df, self.known.num_seeds, self.known.paired)

    @property
    def skewness(self) -> float:
        """The skewness of the differences, as far as seeds and examples show it; NaN if it is unknown."""
        return self.weight.skew.skewness

    @property
    def per_seed(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """Seed, baseline and variant, as figures; None if a run failed, or an unpaired arm has no such seed."""
        if self.known.arms is None:
            return ()
        sides = [
            {seed: self.question.to_figure(score) for seed, score in
             (*zip(arm.seeds, arm.per_seed.tolist(), strict=True), *arm.alone)}
            for arm in self.known.arms
        ]  # fmt: skip
        seeds = dict.fromkeys(seed for arm in self.known.arms for seed in (*arm.seeds, *arm.failed))
        return tuple((seed, sides[0].get(seed), sides[1].get(seed)) for seed in seeds)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks that belong beside the numbers."""
        return write_notes(self)

    def redecide(self, alpha: float, family: Adjusted | None = None) -> Comparison:
        """Decide again at another level, such as the one that a family leaves."""
        return conclude(self.estimate, replace(self.question, alpha=alpha), self.known, family)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return record(self)

    def __str__(self) -> str:
        return describe(self)


def conclude(found: Estimate, question: Question, known: Known, family: Adjusted | None = None) -> Comparison:
    """Put an estimate through the verdict."""
    # Failures are judged at the unadjusted level: more arms or looks must not switch the warning off.
    if not question.obstacle and known.failures.fisher_p < ALPHA:
        question = replace(question, obstacle=known.failures.text)
    level = question.level(known.num_seeds, known.num_runs)
    weight = weigh(found, question, known, level)
    evidence = Evidence(
        known.num_seeds,
        found.difference,
        weight.interval,
        partial(settle, found, question, known),
        level,
        degenerate=explain_degenerate(found, known),
        neither_learned=explain_floor(*known.moments, question),
        at_ceiling=explain_ceiling(*known.moments, question),
        failures=known.failures,
    )
    decision = decide(evidence, question)
    if known.failures.is_uneven and known.failures.worst_p < weight.p:
        weight = replace(weight, p=known.failures.worst_p)
    return Comparison(question, known, found, weight, decision, family)


def settle(found: Estimate, question: Question, known: Known) -> float:
    """Return how many more seeds per arm would settle the question if the difference stays where it is."""
    # With 5 or 6 pairs the interval is wider than t's, which the plan is made for; with 7 it is not.
    is_widened = known.num_seeds >= FEWEST_SEEDS and few_seeds_factor(known.num_seeds, known.paired) > 1
    fewest = float((FEWEST_FOR_EXACT if is_widened else FEWEST_SEEDS) - known.num_seeds)
    if math.isnan(at_upper_bound(found.noise).per_seed):
        return fewest if fewest > 0 else math.nan
    more = more_seeds(found.noise, known.num_seeds, found.difference, question.threshold, question.final_level())
    return max(more, fewest)
