"""The data of two arms besides the estimate of their difference: do they vary, have they learned, are they perfect?

The floor is the score of the best trivial strategy. An arm has learned if its own 95 % t interval over seeds is beyond
the floor.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

from scipy.special import stdtrit

from .effects import Effects, hedges_g, measure_effects
from .estimate import Estimate
from .failures import Failures
from .formatting import show_value
from .question import ALPHA, Question
from .scores import ArmScores, Summary
from .skewness import Skew
from .stability import UNKNOWN, Stability, judge_stability

ROUNDING = 1e-12
"""A standard error below this share of the scores is only rounding."""
PERFECT = (1.0, 100.0)
"""Best scores of fractions and percentages: the ceiling if none is given and every seed has it."""


@dataclass(frozen=True)
class ArmData:
    """Two arms: their summaries in units of the figure, and on the analysis scale (moments)."""

    baseline: Summary
    variant: Summary
    paired: bool
    failures: Failures
    moments: tuple[Summary, Summary]
    scores: tuple[ArmScores, ArmScores] | None = None
    """One number per seed; None if only summaries are known."""
    skew: Skew = field(default_factory=Skew)

    def measure_effects(self, higher_is_better: bool) -> Effects:
        """Measure effect sizes without a unit, on the analysis scale."""
        if self.scores is None:
            variances = [(mean, sd**2, n) for mean, sd, n in (summary.moments() for summary in self.moments)]
            return Effects(hedges_g(*variances), math.nan, None, math.nan)
        return measure_effects(self.scores[0].per_seed, self.scores[1].per_seed, self.paired, higher_is_better)

    @cached_property
    def stability(self) -> Stability:
        """Whether the variant is less or more stable than the baseline."""
        if self.scores is None:
            return Stability(UNKNOWN, "a test of spread needs the score of each seed")
        return judge_stability(*self.scores, self.paired, self.failures)

    @property
    def num_seeds(self) -> int:
        """Seeds of the smaller arm."""
        return min(self.baseline.n, self.variant.n)

    @property
    def num_runs(self) -> int:
        """Runs of the smaller arm, including failed ones."""
        return min(self.failures.runs) or self.num_seeds

    @property
    def num_examples(self) -> int | None:
        """Examples per seed; None if there is one number per seed."""
        return None if self.scores is None else self.scores[0].num_examples

    @property
    def num_clusters(self) -> int | None:
        """Clusters of examples; None if the examples are independent."""
        return None if self.scores is None else self.scores[0].num_clusters


def explain_degenerate(estimate: Estimate, data: ArmData) -> str:
    """Return why an interval would be meaningless: the differences have no spread. Empty if they have."""
    scale = max(abs(summary.mean) for summary in data.moments)
    if not estimate.se <= ROUNDING * max(scale, abs(estimate.difference)):
        return ""
    if not data.paired:
        return "neither arm varies over seeds: are these different runs?"
    if abs(estimate.difference) <= ROUNDING * scale:
        return "every seed scores the same in both arms: is the variant in the model at all?"
    return "every seed differs by the same amount: are these different runs?"


def has_learned(arm: Summary, question: Question) -> bool:
    """Return whether an arm's interval is beyond the floor, for one seed its score; True without a floor."""
    if question.floor is None:
        return True
    mean, sd, n = arm.moments()
    reach = 0.0 if math.isnan(sd) else -float(stdtrit(n - 1, ALPHA / 2)) * sd / math.sqrt(n)
    return is_beyond_floor(mean - reach if question.higher_is_better else mean + reach, question)


def is_beyond_floor(value: float, question: Question) -> bool:
    """Return whether a value, on the scale of the analysis, is better than the floor; True without a floor."""
    if question.floor is None:
        return True
    floor = question.to_analysis(question.floor)
    return value > floor if question.higher_is_better else value < floor


def explain_floor(baseline: Summary, variant: Summary, question: Question) -> str:
    """Return why neither arm has learned the task; empty if one has."""
    if question.floor is None or has_learned(baseline, question) or has_learned(variant, question):
        return ""
    means = [show_value(question.to_metric(arm.mean)) for arm in (baseline, variant)]
    return (
        f"a trivial strategy scores {show_value(question.floor)}, and the {1 - ALPHA:.0%} intervals of the baseline "
        f"({means[0]}) and the variant ({means[1]}) are not beyond that"
    )


def explain_ceiling(baseline: Summary, variant: Summary, question: Question) -> str:
    """Return why both arms are at the ceiling; empty if one is not."""
    if question.ceiling is None:
        has_spread = any(arm.moments()[1] != 0 for arm in (baseline, variant))
        is_best = baseline.mean == variant.mean and baseline.mean in PERFECT
        if has_spread or not is_best or not question.higher_is_better or question.scale == "log":
            return ""
        return f"every seed of both arms scores {show_value(baseline.mean)}: a harder task could tell them apart"
    ceiling = question.to_analysis(question.ceiling)
    sign = 1 if question.higher_is_better else -1
    if any(sign * (ceiling - arm.mean) > question.threshold for arm in (baseline, variant)):
        return ""
    return (
        f"both arms are within {question.shown_smallest} of the best possible, {show_value(question.ceiling)}: a "
        "harder task could tell them apart"
    )
