"""What is known of two arms besides the estimate of their difference: whether they vary, have learned, or are perfect.

The floor is what the best trivial strategy scores. An arm has learned if its own 95 % t interval over seeds lies beyond
the floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from scipy.special import stdtrit

from .effects import Effects, hedges_g, measure_effects
from .estimate import Estimate
from .failures import Failures
from .question import ALPHA, Question
from .scores import ArmScores, Summary
from .skewness import Skew
from .stability import UNKNOWN, Stability, judge_stability

ROUNDING = 1e-12
"""A standard error below this share of the scores is rounding alone."""
PERFECT = (1.0, 100.0)
"""Best scores of shares and percentages, taken as the ceiling if none is given and every seed has it."""


@dataclass(frozen=True)
class Known:
    """What is known of two arms besides the estimate of their difference.

    baseline, variant: in units of the figure. moments: the same on the scale of the analysis.
    """

    baseline: Summary
    variant: Summary
    paired: bool
    failures: Failures
    moments: tuple[Summary, Summary]
    arms: tuple[ArmScores, ArmScores] | None = None
    """With one number per seed; None if only summaries are known."""
    skew: Skew = field(default_factory=Skew)

    @cached_property
    def effects(self) -> Effects:
        """Sizes of the difference without its unit, on the scale of the analysis."""
        if self.arms is None:
            variances = [(mean, sd**2, n) for mean, sd, n in (side.moments() for side in self.moments)]
            return Effects(hedges_g(*variances), math.nan, None, math.nan)
        return measure_effects(self.arms[0].per_seed, self.arms[1].per_seed, self.paired)

    @cached_property
    def steadiness(self) -> Stability:
        """The word on stability."""
        if self.arms is None:
            return Stability(UNKNOWN, "a test of spread needs the score of each seed")
        return judge_stability(*self.arms, self.paired, self.failures)

    @property
    def num_seeds(self) -> int:
        """Seeds of the smaller arm."""
        return min(self.baseline.n, self.variant.n)

    @property
    def num_runs(self) -> int:
        """Runs of the smaller arm, failed ones included."""
        return min(self.failures.runs) or self.num_seeds

    @property
    def num_examples(self) -> int | None:
        """Examples that each seed was asked; None if there is one number per seed."""
        return None if self.arms is None else self.arms[0].num_examples

    @property
    def num_clusters(self) -> int | None:
        """Clusters that the examples fall into; None if every example is on its own."""
        return None if self.arms is None else self.arms[0].num_clusters


def explain_degenerate(found: Estimate, known: Known) -> str:
    """Say why an interval would mean nothing: without any spread there is nothing to measure a difference by."""
    scale = max(abs(side.mean) for side in known.moments)
    if not found.se <= ROUNDING * max(scale, abs(found.difference)):
        return ""
    if not known.paired:
        return "neither arm varies over seeds: are these different runs?"
    if abs(found.difference) <= ROUNDING * scale:
        return "every seed scores the same in both arms: is the variant in the model at all?"
    return "every seed differs by the same: are these different runs?"


def has_learned(arm: Summary, question: Question) -> bool:
    """Tell whether an arm's interval clears the floor; one seed is judged by its score. True without a floor."""
    if question.floor is None:
        return True
    mean, sd, n = arm.moments()
    reach = 0.0 if math.isnan(sd) else -float(stdtrit(n - 1, ALPHA / 2)) * sd / math.sqrt(n)
    floor = question.to_analysis(question.floor)
    return mean - reach > floor if question.higher_is_better else mean + reach < floor


def explain_floor(baseline: Summary, variant: Summary, question: Question) -> str:
    """Say that neither arm has learned the task; nothing if one has."""
    if has_learned(baseline, question) or has_learned(variant, question):
        return ""
    means = [show_figure(question.to_figure(arm.mean)) for arm in (baseline, variant)]
    return (
        f"a trivial strategy scores {show_figure(question.floor or 0.0)}, and neither the baseline ({means[0]}) nor "
        f"the variant ({means[1]}) is beyond it by its own {1 - ALPHA:.0%} interval"
    )


def explain_ceiling(baseline: Summary, variant: Summary, question: Question) -> str:
    """Say that both arms are at the ceiling; nothing if one is not."""
    if question.ceiling is None:
        has_spread = any(arm.moments()[1] != 0 for arm in (baseline, variant))
        is_best = baseline.mean == variant.mean and baseline.mean in PERFECT
        if has_spread or not is_best or not question.higher_is_better or question.scale == "log":
            return ""
        return f"every seed of both arms scores {show_figure(baseline.mean)}: a harder task could tell them apart"
    ceiling = question.to_analysis(question.ceiling)
    sign = 1 if question.higher_is_better else -1
    if any(sign * (ceiling - arm.mean) > question.threshold for arm in (baseline, variant)):
        return ""
    return (
        f"both arms are within {question.shown_smallest} of the best possible, {show_figure(question.ceiling)}: a "
        "harder task could tell them apart"
    )


def show_figure(value: float) -> str:
    """Write a figure with four digits."""
    return f"{value:.4g}".replace("-", "−")
