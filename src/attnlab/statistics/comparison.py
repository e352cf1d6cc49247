"""Two arms compared: `compare` takes scores, `compare_corpus` what a metric of a corpus is made of, `compare_summaries`
what was published; all conclude alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .account import describe, record
from .bootstrap import Metric, corpus_estimate, corpus_scores
from .effects import Effects, hedges_g, measure_effects
from .eprocess import e_process
from .estimate import Estimate, estimate, welch_from
from .exact import Exact, permutation, sign_flip
from .planning import Plan, make_plan, more_seeds
from .scores import Arm, read_arms
from .spread import Spread, measure_spread
from .stability import UNKNOWN, Stability, judge_stability
from .summary import Summary
from .verdict import ALPHA, Evidence, Looks, Question, Verdict, decide

ROUNDING = 1e-12
"""A standard error below this share of the scores is rounding alone."""


@dataclass(frozen=True)
class Known:
    """What is known of two arms besides the estimate; the scores themselves where more than summaries is."""

    baseline: Summary
    variant: Summary
    paired: bool
    effects: Effects
    steadiness: Stability
    arms: tuple[Arm, Arm] | None = None


@dataclass(frozen=True)
class Comparison:
    """What came out of comparing a variant with a baseline. Differences are variant − baseline, in metric units.

    interval, p: at `level`, by `method`. decision: the verdict with its reason.
    """

    question: Question
    known: Known
    estimate: Estimate
    interval: tuple[float, float]
    p: float
    level: float
    method: str
    decision: Verdict

    @property
    def difference(self) -> float:
        """The variant's mean less the baseline's."""
        return self.estimate.difference

    @property
    def verdict(self) -> str:
        """What the evidence carries, in one of nine phrases."""
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
        """A p that assumes no distribution, and the smallest that n allows; None where only summaries are known."""
        if self.known.arms is None:
            return None
        baseline, variant = (arm.per_seed for arm in self.known.arms)
        return sign_flip(variant - baseline) if self.known.paired else permutation(baseline, variant)

    @cached_property
    def spread(self) -> Spread:
        """The SD of each arm and their ratio, with intervals."""
        baseline, variant = ((side.moments()[1], side.n) for side in (self.known.baseline, self.known.variant))
        return measure_spread(baseline, variant, self.rho if self.known.paired else None)

    @cached_property
    def plan(self) -> Plan:
        """How many seeds the smallest effect needs, and what the present number can detect."""
        present = min(self.known.baseline.n, self.known.variant.n)
        return make_plan(self.estimate.noise, present, self.question.smallest, self.question.alpha)

    @property
    def per_seed(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """Seed, baseline and variant; None where a run failed, or an unpaired arm has no such seed."""
        if self.known.arms is None:
            return ()
        sides = [dict([*zip(arm.seeds, arm.per_seed.tolist(), strict=True), *arm.alone]) for arm in self.known.arms]
        seeds = dict.fromkeys(seed for arm in self.known.arms for seed in (*arm.seeds, *arm.failed))
        return tuple((seed, sides[0].get(seed), sides[1].get(seed)) for seed in seeds)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said beside the numbers."""
        notes = [self.estimate.note] if self.estimate.note else []
        if self.question.looks == "open" and self.known.arms and self.known.arms[0].num_examples is not None:
            notes.append("looked at at any time, the interval speaks of other seeds, not of other examples")
        for arm in self.known.arms or ():
            if arm.failed:
                notes.append(f"{len(arm.failed)} of {arm.num_runs} runs of the {arm.name} have no score")
            if arm.num_seeds > 1 and np.ptp(arm.per_seed) == 0:
                notes.append(f"all seeds of the {arm.name} score the same, {arm.per_seed[0]:.6g}")
        if self.exact is not None and self.exact.smallest > ALPHA:
            notes.append(
                f"with so few seeds the exact test beside it cannot bring its p below {self.exact.smallest:.3g}"
            )
        return tuple(notes)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return record(self)

    def __str__(self) -> str:
        return describe(self)


def compare(
    baseline_scores: Any,
    variant_scores: Any,
    paired: bool = True,
    smallest: float = 1.0,
    *,
    higher_is_better: bool = True,
    alpha: float = ALPHA,
    looks: Looks = None,
    obstacle: str = "",
) -> Comparison:
    """Compare two arms over seeds and say what the evidence carries.

    Scores are one number a seed, or rows [seed, example]; in order, or by the seed's name in a dict. None is a run that
    failed. paired: the same place or name is the same seed in both arms. smallest: the smallest difference worth
    having, in units of the metric. looks: (5, 10, 15, 20) where looks were declared, "open" to look after every seed.
    obstacle: why the arms cannot be compared, such as a leak.
    """
    question = Question(smallest, higher_is_better, alpha, looks, obstacle)
    baseline, variant = read_arms(baseline_scores, variant_scores, paired)
    return conclude(estimate(baseline, variant, paired), question, know(baseline, variant, paired, alpha))


def compare_corpus(
    metric: Metric, baseline: Any, variant: Any, paired: bool = True, question: Question | None = None
) -> Comparison:
    """Compare two arms by a metric that is no mean over examples, such as BLEU; both are [seed, example, …]."""
    question = question or Question()
    tables = np.asarray(baseline), np.asarray(variant)
    scores = [corpus_scores(name, metric, table) for name, table in zip(("baseline", "variant"), tables, strict=True)]
    arms = read_arms(scores[0], scores[1], paired)
    found = corpus_estimate(metric, tables[0], tables[1], paired)
    return conclude(found, question, know(*arms, paired, question.alpha))


def compare_summaries(baseline: Summary, variant: Summary, question: Question | None = None) -> Comparison:
    """Compare two arms of which only mean, SD and n are known, by Welch's t."""
    baseline.check("baseline")
    variant.check("variant")
    moments = [(mean, sd**2, n) for mean, sd, n in (baseline.moments(), variant.moments())]
    effects = Effects(hedges_g(*moments), math.nan, None, math.nan)
    unknown = Stability(UNKNOWN, "a test of spread needs the score of each seed")
    found = welch_from(baseline.moments(), variant.moments())
    return conclude(found, question or Question(), Known(baseline, variant, False, effects, unknown))


def know(baseline: Arm, variant: Arm, paired: bool, alpha: float) -> Known:
    """Measure what is said beside an estimate."""
    effects = measure_effects(baseline.per_seed, variant.per_seed, paired)
    steadiness = judge_stability(baseline, variant, paired, alpha)
    return Known(Summary.of(baseline), Summary.of(variant), paired, effects, steadiness, (baseline, variant))


def conclude(found: Estimate, question: Question, known: Known) -> Comparison:
    """Put an estimate through the verdict."""
    question = _with_failures(question, known.steadiness)
    num_seeds = min(known.baseline.n, known.variant.n)
    level, interval, p, method = _weigh(found, question, known, num_seeds)
    ask = partial(more_seeds, found.noise, num_seeds, found.difference, question.smallest, question.alpha)
    evidence = Evidence(num_seeds, found.difference, interval, _degenerate(found, known), ask)
    return Comparison(question, known, found, interval, p, level, method, decide(evidence, question))


def _with_failures(question: Question, steadiness: Stability) -> Question:
    """Runs that finished are no fair sample of an arm that fails more often than the other."""
    if question.obstacle or not steadiness.failed_p < question.alpha:
        return question
    failed, runs = steadiness.failed, steadiness.runs
    why = f"{failed[0]} of {runs[0]} runs of the baseline and {failed[1]} of {runs[1]} of the variant failed"
    return replace(question, obstacle=why)


def _weigh(
    found: Estimate, question: Question, known: Known, num_seeds: int
) -> tuple[float, tuple[float, float], float, str]:
    """Return level, interval, p and method: the estimate's, or the e-process's where any time may be a look."""
    if question.looks != "open":
        level = question.level(num_seeds)
        return level, found.interval(level), found.p, found.method
    if known.arms is None or known.arms[0].num_seeds != known.arms[1].num_seeds:
        raise StatisticsError(
            "an open-ended comparison takes seeds in the order in which they came, as many of each arm; give a score "
            "for each seed, or declare looks such as (5, 10, 15, 20)"
        )
    process = e_process(known.arms[1].per_seed - known.arms[0].per_seed, question.alpha)
    return question.alpha, process.interval, process.p, process.method


def _degenerate(found: Estimate, known: Known) -> str:
    """Say why an interval would mean nothing: without any spread there is nothing to measure a difference by."""
    scale = max(abs(known.baseline.mean), abs(known.variant.mean), abs(found.difference))
    if not found.se <= ROUNDING * scale:
        return ""
    if not known.paired:
        return "neither arm varies over seeds: are these different runs?"
    if abs(found.difference) <= ROUNDING * scale:
        return "every seed scores the same in both arms: is the variant in the model at all?"
    return "every seed differs by the same: are these different runs?"
