"""What is known of two arms besides the estimate of their difference, and whether they have any spread at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from .effects import Effects, hedges_g, measure_effects
from .estimate import Estimate
from .failures import Failures
from .scores import Arm
from .stability import UNKNOWN, Stability, judge_stability
from .summary import Summary

ROUNDING = 1e-12
"""A standard error below this share of the scores is rounding alone."""


@dataclass(frozen=True)
class Known:
    """What is known of two arms besides the estimate; the scores themselves if more than summaries is.

    baseline, variant: in units of the figure. moments: the same on the scale of the analysis.
    """

    baseline: Summary
    variant: Summary
    paired: bool
    failures: Failures
    moments: tuple[Summary, Summary]
    arms: tuple[Arm, Arm] | None = None

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
