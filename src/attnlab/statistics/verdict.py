"""The one place where numbers become a verdict, in exactly these words and no others (see docs/statistics.md).

The interval decides, the threshold names: an interval without 0 is BETTER or WORSE, BY AT LEAST the threshold if the
interval lies beyond it, BELOW YOUR THRESHOLD if the difference does not reach it; an interval inside ± the threshold is
NO MEANINGFUL DIFFERENCE; anything else is INCONCLUSIVE.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .failures import Failures
from .question import Question

FEWEST_SEEDS = 5

BETTER, WORSE = "BETTER", "WORSE"
AT_LEAST = " BY AT LEAST {}"
FINISHED = " AMONG RUNS THAT FINISHED"
BELOW = ", BELOW YOUR THRESHOLD"
SAME = "NO MEANINGFUL DIFFERENCE"
INCONCLUSIVE = "INCONCLUSIVE (about {} more seeds)"
TOO_FEW = f"TOO FEW SEEDS (n < {FEWEST_SEEDS})"
NEITHER_LEARNED = "NEITHER LEARNED THE TASK"
AT_CEILING = "BOTH AT CEILING"
NOT_COMPARABLE = "NOT COMPARABLE ({})"
DEGENERATE = "DEGENERATE"
STILL_TRAINING, SO_FAR = "STILL TRAINING", " SO FAR"


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on, on the scale of the analysis: seeds of the smaller arm, a difference, its interval.

    level: what p is compared with. more_seeds: how many more seeds would settle it, ∞ if none will. degenerate,
    neither_learned, at_ceiling: why, each empty if it is not so.
    """

    num_seeds: int
    difference: float
    interval: tuple[float, float]
    more_seeds: Callable[[], float]
    level: float = 0.05
    degenerate: str = ""
    neither_learned: str = ""
    at_ceiling: str = ""
    failures: Failures = field(default_factory=Failures)

    @property
    def sign(self) -> int:
        """1 if the interval is above 0, −1 if below, 0 if it holds 0."""
        low, high = self.interval
        return int(low > 0) - int(high < 0)

    @property
    def worst_sign(self) -> int:
        """What the arms show with every failed run as the worst result: 1, −1, or 0 if that shows nothing."""
        is_shown = self.failures.is_uneven and self.failures.worst_p <= self.level
        return self.failures.worst_sign if is_shown else 0


@dataclass(frozen=True)
class Verdict:
    """The words, why in one sentence, and the plain outcome: the words without what qualifies them."""

    words: str
    reason: str
    outcome: str

    @property
    def is_difference(self) -> bool:
        """Whether the arms are said to differ, qualified or not."""
        return self.outcome in (BETTER, WORSE)

    @property
    def is_decided(self) -> bool:
        """Whether the question is settled, so that more seeds are not needed for it."""
        return self.outcome in (BETTER, WORSE, SAME, AT_CEILING)

    def __str__(self) -> str:
        return self.words


def decide(evidence: Evidence, question: Question) -> Verdict:
    """Say what the evidence carries, and no more."""
    if question.obstacle:
        words = NOT_COMPARABLE.format(question.obstacle)
        return Verdict(words, "the arms differ in more than what is asked about", NOT_COMPARABLE)
    if evidence.num_seeds < FEWEST_SEEDS:
        reason = f"{evidence.num_seeds} an arm; with fewer than {FEWEST_SEEDS} the spread is as good as unknown"
        return Verdict(TOO_FEW, reason, TOO_FEW)
    if evidence.neither_learned:
        return Verdict(NEITHER_LEARNED, evidence.neither_learned, NEITHER_LEARNED)
    if evidence.at_ceiling and not evidence.sign and not evidence.worst_sign:
        return Verdict(AT_CEILING, evidence.at_ceiling, AT_CEILING)
    if evidence.degenerate:
        return Verdict(DEGENERATE, evidence.degenerate, DEGENERATE)
    verdict = _weigh(evidence, question)
    return _while_training(verdict, question) if question.is_still_training else verdict


def _weigh(evidence: Evidence, question: Question) -> Verdict:
    if evidence.worst_sign and evidence.worst_sign != evidence.sign:
        return _failing(evidence, question)
    if evidence.sign:
        return _differs(evidence, question)
    low, high = evidence.interval
    if max(-low, high) < question.threshold:
        reason = f"the whole interval is nearer to 0 than the smallest effect, {question.shown_smallest}"
        qualifier, because = _among_finished(evidence)
        return Verdict(SAME + qualifier, reason + because, SAME)
    return _open(evidence, question)


def _failing(evidence: Evidence, question: Question) -> Verdict:
    """Say what failed runs show that the runs that finished do not."""
    outcome = BETTER if (evidence.worst_sign > 0) == question.higher_is_better else WORSE
    reason = f"{evidence.failures.text}; with a failed run as the worst result, p = {evidence.failures.worst_p:.2g}"
    return Verdict(outcome, reason, outcome)


def _differs(evidence: Evidence, question: Question) -> Verdict:
    outcome = BETTER if (evidence.sign > 0) == question.higher_is_better else WORSE
    nearest, farthest = sorted(abs(end) for end in evidence.interval)
    qualifier, because = _among_finished(evidence)
    shown = question.shown_smallest
    if nearest >= question.threshold:
        words = outcome + AT_LEAST.format(shown) + qualifier
        return Verdict(words, f"the whole interval is at or beyond {shown}{because}", outcome)
    if abs(evidence.difference) >= question.threshold:
        reason = f"the interval is without 0, and the difference reaches {shown}"
        return Verdict(outcome + qualifier, reason + because, outcome)
    end = "also ends below it" if farthest < question.threshold else "reaches beyond it"
    reason = f"the interval is without 0; the difference is below the smallest effect, {shown}, and the interval {end}"
    return Verdict(outcome + qualifier + BELOW, reason + because, outcome)


def _among_finished(evidence: Evidence) -> tuple[str, str]:
    """Return what qualifies the words if one arm failed more often, by however little, and why."""
    if not evidence.failures.is_uneven:
        return "", ""
    shown = "points the same way" if evidence.worst_sign else "is not shown"
    return FINISHED, f"; {evidence.failures.text}, and with a failed run as the worst result the difference {shown}"


def _open(evidence: Evidence, question: Question) -> Verdict:
    more = evidence.more_seeds()
    reason = f"the interval holds both 0 and a difference of {question.shown_smallest}"
    if math.isinf(more):
        reason += "; no number of seeds within reach will do: the spread is too wide for it, or the examples too few"
    elif isinstance(question.looks, str):
        reason += "; open-ended runs need more seeds than these"
    elif question.looks is not None and evidence.num_seeds >= max(question.looks):
        reason += "; the declared looks are over, so that more seeds are another study"
    words = INCONCLUSIVE.format("∞" if math.isinf(more) else f"{more:.0f}")
    return Verdict(words, reason, INCONCLUSIVE)


def _while_training(verdict: Verdict, question: Question) -> Verdict:
    """Say that longer runs may show something else."""
    words = INCONCLUSIVE.partition(" (")[0] if verdict.outcome == INCONCLUSIVE else verdict.words.removesuffix(BELOW)
    below = BELOW if verdict.words.endswith(BELOW) else ""
    gain = f"the last fifth of training gained {question.late_gain:.3g}{question.unit}"
    reason = f"{gain}, more than half of {question.shown_smallest}; so far, {verdict.reason}"
    return Verdict(f"{STILL_TRAINING}, {words}{SO_FAR}{below}", reason, STILL_TRAINING)
