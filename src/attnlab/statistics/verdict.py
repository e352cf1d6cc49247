"""The one place where numbers become a verdict, in exactly these words and no others.

The interval decides, the threshold names: an interval without 0 is BETTER or WORSE, below the threshold where the
difference itself is; an interval inside ± the threshold is NO MEANINGFUL DIFFERENCE; anything else is INCONCLUSIVE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from attnlab.errors import StatisticsError

from .looks import limit_at

FEWEST_SEEDS = 5
ALPHA = 0.05

BETTER, WORSE = "BETTER", "WORSE"
BELOW = ", BELOW YOUR THRESHOLD"
SAME = "NO MEANINGFUL DIFFERENCE"
INCONCLUSIVE = "INCONCLUSIVE (about {} more seeds)"
TOO_FEW = f"TOO FEW SEEDS (n < {FEWEST_SEEDS})"
NOT_COMPARABLE = "NOT COMPARABLE ({})"
DEGENERATE = "DEGENERATE"

Looks = Sequence[int] | Literal["open"] | None
"""Numbers of seeds declared beforehand, 'open' for a look after every seed, None for one look at all."""


@dataclass(frozen=True)
class Question:
    """What is asked of a comparison, settled before it is made.

    smallest: the smallest difference worth having, in units of the metric. alpha: how often nothing may look like
    something. looks: when the seeds are looked at. obstacle: why the arms cannot be compared; empty where they can.
    """

    smallest: float = 1.0
    higher_is_better: bool = True
    alpha: float = ALPHA
    looks: Looks = None
    obstacle: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.smallest, int | float) and 0 < self.smallest < math.inf):
            raise StatisticsError(
                f"smallest={self.smallest!r}: the smallest difference worth having must be a number above 0, in units "
                "of the metric, such as 1.0 for one point of F1 in percent"
            )
        if not (isinstance(self.alpha, float) and 0 < self.alpha < 0.5):
            raise StatisticsError(f"alpha={self.alpha!r} must be a number between 0 and 0.5; 0.05 is usual")
        if isinstance(self.looks, str) and self.looks != "open":
            raise StatisticsError(f"looks={self.looks!r}: give numbers of seeds such as (5, 10, 15, 20), or 'open'")

    def level(self, num_seeds: int) -> float:
        """Return the level at this number of seeds: alpha, or the limit of the look."""
        if self.looks is None or isinstance(self.looks, str):
            return self.alpha
        return limit_at(num_seeds, self.looks, self.alpha)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on: seeds of the smaller arm, a difference, its interval, and why it is degenerate.

    more_seeds: asks the plan how many more seeds would do, ∞ where none will.
    """

    num_seeds: int
    difference: float
    interval: tuple[float, float]
    degenerate: str
    more_seeds: Callable[[], float]


@dataclass(frozen=True)
class Verdict:
    """The words, and why in one sentence."""

    words: str
    reason: str

    def __str__(self) -> str:
        return self.words


def decide(evidence: Evidence, question: Question) -> Verdict:
    """Say what the evidence carries, and no more."""
    if question.obstacle:
        return Verdict(NOT_COMPARABLE.format(question.obstacle), "the arms differ in more than what is asked about")
    if evidence.num_seeds < FEWEST_SEEDS:
        reason = f"{evidence.num_seeds} an arm; with fewer than {FEWEST_SEEDS} the spread is as good as unknown"
        return Verdict(TOO_FEW, reason)
    if evidence.degenerate:
        return Verdict(DEGENERATE, evidence.degenerate)
    low, high = evidence.interval
    if low > 0 or high < 0:
        return _differs(evidence, question)
    if max(-low, high) < question.smallest:
        return Verdict(SAME, f"the whole interval is nearer to 0 than the smallest effect, {question.smallest:g}")
    return _open(evidence, question)


def _differs(evidence: Evidence, question: Question) -> Verdict:
    is_better = (evidence.difference > 0) == question.higher_is_better
    words = BETTER if is_better else WORSE
    reach = max(abs(end) for end in evidence.interval)
    if abs(evidence.difference) >= question.smallest:
        return Verdict(words, f"the interval is without 0, and the difference reaches {question.smallest:g}")
    end = "also ends below it" if reach < question.smallest else "reaches beyond it"
    return Verdict(
        words + BELOW,
        f"the interval is without 0; the difference is below the smallest effect, {question.smallest:g}, and the "
        f"interval {end}",
    )


def _open(evidence: Evidence, question: Question) -> Verdict:
    more = evidence.more_seeds()
    reason = f"the interval holds both 0 and a difference of {question.smallest:g}"
    if math.isinf(more):
        reason += "; no number of seeds within reach will do: the spread is too wide for it, or the examples too few"
    elif isinstance(question.looks, str):
        reason += "; open-ended runs need more seeds than these"
    elif question.looks is not None and evidence.num_seeds >= max(question.looks):
        reason += "; the declared looks are over, so that more seeds are another study"
    return Verdict(INCONCLUSIVE.format("∞" if math.isinf(more) else f"{more:.0f}"), reason)
