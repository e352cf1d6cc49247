"""The result of comparing two arms: estimate, verdict interval, verdict, and further figures."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from attnlab.notebook import Facts, Showable

from .arm_data import ArmData, explain_ceiling, explain_degenerate, explain_floor
from .effects import Effects
from .estimate import Estimate
from .exact import Exact, permutation, sign_flip
from .families import Adjusted
from .formatting import describe, list_facts, record
from .inference import Inference, infer
from .notes import write_notes
from .planning import Plan, at_upper_bound, make_plan, more_seeds
from .power import compute_exaggeration, compute_power
from .question import ALPHA, Question
from .spread import Spread, measure_spread
from .verdict import MIN_SEEDS, Evidence, Verdict, decide


@dataclass(frozen=True, repr=False)
class Comparison(Showable):
    """A variant compared with a baseline. Differences are variant − baseline, in units of the figure or in percent.

    estimate, inference: on the analysis scale, which may be logs. decision: the verdict with its reason. family: the
    adjustment for being one of several comparisons; None for a single comparison.
    """

    question: Question
    data: ArmData
    estimate: Estimate
    inference: Inference
    decision: Verdict
    family: Adjusted | None = None

    @property
    def difference(self) -> float:
        """The variant's mean minus the baseline's; on the log scale the percent change."""
        return self.question.to_difference(self.estimate.difference)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that decides, at `level`."""
        return self.question.to_interval(self.inference.interval)

    def interval_at(self, level: float) -> tuple[float, float]:
        """Return the interval at another level, such as 0.05 for 95 %; it does not decide."""
        return self.question.to_interval(infer(self.estimate, self.question, self.data, level).interval)

    @property
    def level(self) -> float:
        """The level of the verdict interval, after looks and the family."""
        return self.inference.level

    @property
    def p(self) -> float:
        """The p-value that decides: the verdict is a difference if and only if it is at most `level`."""
        return self.inference.p

    @property
    def plain_p(self) -> float:
        """The p-value of the plain t test, without what is added for few or skewed scores."""
        return self.estimate.p

    @property
    def widened(self) -> tuple[float, float]:
        """How many times as wide as a plain one each side of the interval is: below the difference, and above it."""
        return self.inference.skew.low, self.inference.skew.high

    @property
    def is_widened(self) -> bool:
        """Whether the interval is wider than a plain one, and decides."""
        return max(self.widened) > 1 and self.decision.depends_on_p

    @property
    def method(self) -> str:
        """The method that computed the interval and the p-value."""
        return self.inference.method

    @property
    def verdict(self) -> str:
        """The fixed words of the verdict."""
        return self.decision.words

    @property
    def stability(self) -> str:
        """LESS STABLE, MORE STABLE or STABILITY UNKNOWN."""
        return self.data.stability.words

    @cached_property
    def effects(self) -> Effects:
        """Hedges' g, the probability that a variant seed is above a baseline seed, pairs ahead, and ρ."""
        return self.data.measure_effects(self.question.higher_is_better)

    @property
    def rho(self) -> float:
        """The correlation of the arms over paired seeds; NaN without pairs."""
        return self.effects.rho

    @cached_property
    def exact(self) -> Exact | None:
        """A p-value without distributional assumptions; None if only summaries are known."""
        if self.data.scores is None:
            return None
        baseline, variant = (arm.per_seed for arm in self.data.scores)
        return sign_flip(variant - baseline) if self.data.paired else permutation(baseline, variant)

    @cached_property
    def spread(self) -> Spread:
        """The SD of each arm and their ratio, with intervals, on the analysis scale."""
        baseline, variant = ((summary.moments()[1], summary.n) for summary in self.data.moments)
        return measure_spread(baseline, variant, self.rho if self.data.paired else None)

    @cached_property
    def plan(self) -> Plan:
        """Seeds that the smallest effect needs, effects that the present seeds detect, and seeds that settle it."""
        show, question = self.question.to_difference, self.question
        plan = make_plan(self.estimate.noise, self.data.num_seeds, question.threshold, question.final_level())
        more = 0.0 if self.decision.is_decided else math.nan
        can_tell = self.decision.can_use_more_seeds and not question.is_still_training
        if not self.decision.is_decided and can_tell:
            more = _count_missing_seeds(self.estimate, question, self.data)
        detectable = {power: show(effect) for power, effect in plan.detectable.items()}
        sd, bound = show(plan.sd), show(plan.sd_bound)
        return Plan(float(question.smallest), plan.present, sd, bound, plan.seeds, detectable, more)

    @cached_property
    def power_at_smallest(self) -> float:
        """The power of these seeds for a true difference of `smallest`; NaN if the spread is unknown."""
        return compute_power(self.estimate.noise, *self._measured, se=self.estimate.se)

    @cached_property
    def exaggeration(self) -> float:
        """The mean factor by which differences that are found are too large, if the true one is `smallest`."""
        return compute_exaggeration(self.estimate.noise, *self._measured, se=self.estimate.se)

    @property
    def _measured(self) -> tuple[int, float, float]:
        """The seeds, the true difference and the level of which power is measured."""
        return self.data.num_seeds, self.question.threshold, self.level

    @property
    def skewness(self) -> float:
        """The skewness of the differences over seeds and examples; NaN if it is unknown."""
        return self.inference.skew.skewness

    @property
    def per_seed(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """Seed, baseline and variant, as figures; None if a run failed, or an unpaired arm has no such seed."""
        if self.data.scores is None:
            return ()
        baseline, variant = (
            {seed: self.question.to_metric(score) for seed, score in arm.score_by_seed.items()}
            for arm in self.data.scores
        )
        seeds = dict.fromkeys(seed for arm in self.data.scores for seed in (*arm.seeds, *arm.failed))
        return tuple((seed, baseline.get(seed), variant.get(seed)) for seed in seeds)

    @property
    def notes_by_kind(self) -> dict[str, tuple[str, ...]]:
        """Remarks on the numbers; the kinds are the keys of `statistics.notes.WRITERS`."""
        return write_notes(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to print beside the numbers."""
        return tuple(note for notes in self.notes_by_kind.values() for note in notes)

    def facts(self) -> Facts:
        """Return the verdict, its reason and the figures."""
        is_good = {"BETTER": True, "WORSE": False}.get(self.verdict.partition(" ")[0])
        return Facts(self.verdict, self.decision.reason, rows=list_facts(self), is_good=is_good)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return record(self)

    def __str__(self) -> str:
        return describe(self)


def conclude(estimate: Estimate, question: Question, data: ArmData, family: Adjusted | None = None) -> Comparison:
    """Decide a comparison from its estimate."""
    # Failures are tested at the unadjusted level: more arms or looks must not switch the warning off.
    if not question.obstacle and data.failures.fisher_p < ALPHA:
        question = replace(question, obstacle=data.failures.text)
    level = question.level(data.num_seeds, data.num_runs)
    inference = infer(estimate, question, data, level)
    count_seeds = partial(_count_missing_seeds, estimate, question, data)
    evidence = Evidence(
        data.num_seeds, estimate.difference, inference.interval, count_seeds, level, explain_degenerate(estimate, data),
        explain_floor(*data.moments, question), explain_ceiling(*data.moments, question), data.failures,
    )  # fmt: skip
    decision = decide(evidence, question)
    if data.failures.is_uneven and data.failures.worst_p < inference.p:
        inference = replace(inference, p=data.failures.worst_p)
    return Comparison(question, data, estimate, inference, decision, family)


def _count_missing_seeds(estimate: Estimate, question: Question, data: ArmData) -> float:
    """Return how many more seeds per arm would settle the question if the difference stays as it is."""
    fewest = float(MIN_SEEDS - data.num_seeds)
    if math.isnan(at_upper_bound(estimate.noise).per_seed):
        return fewest if fewest > 0 else math.nan
    level = question.final_level()
    return max(more_seeds(estimate.noise, data.num_seeds, estimate.difference, question.threshold, level), fewest)
