"""Turns estimates into a verdict from a fixed vocabulary (see docs/statistics.md).

An interval without 0 is BETTER or WORSE: BY AT LEAST the threshold if the whole interval is beyond it, BELOW YOUR
THRESHOLD if the estimate does not reach it. An interval inside ± the threshold is NO MEANINGFUL DIFFERENCE, any other
one INCONCLUSIVE.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .failures import Failures
from .question import Question

MIN_SEEDS = 5

BETTER, WORSE = "BETTER", "WORSE"
AT_LEAST = " BY AT LEAST {}"
FINISHED = " AMONG RUNS THAT FINISHED"
BELOW = ", BELOW YOUR THRESHOLD"
SAME = "NO MEANINGFUL DIFFERENCE"
INCONCLUSIVE = "INCONCLUSIVE (about {} more seeds)"
TOO_FEW = f"TOO FEW SEEDS (n < {MIN_SEEDS})"
NEITHER_LEARNED = "NEITHER LEARNED THE TASK"
AT_CEILING = "BOTH AT CEILING"
NOT_COMPARABLE = "NOT COMPARABLE ({})"
DEGENERATE = "DEGENERATE"
STILL_TRAINING, SO_FAR = "STILL TRAINING", " SO FAR"


@dataclass(frozen=True)
class Evidence:
    """The basis of a verdict on the analysis scale; num_seeds is that of the smaller arm.

    level: what p is compared with. more_seeds: how many more seeds would settle the question, ∞ if none will.
    degenerate, neither_learned, at_ceiling: the reason if that is the case, otherwise empty.
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
        """1 if the interval is above 0, −1 if below, 0 if it contains 0."""
        low, high = self.interval
        return int(low > 0) - int(high < 0)

    @property
    def worst_sign(self) -> int:
        """The sign of the difference if failed runs count as the worst result; 0 if that test finds none."""
        is_found = self.failures.is_uneven and self.failures.worst_p <= self.level
        return self.failures.worst_sign if is_found else 0


@dataclass(frozen=True)
class Verdict:
    """The words, the reason in one sentence, and the outcome: the words without qualifiers."""

    words: str
    reason: str
    outcome: str

    @property
    def is_difference(self) -> bool:
        """Whether the verdict is BETTER or WORSE, qualified or not."""
        return self.outcome in (BETTER, WORSE)

    @property
    def is_decided(self) -> bool:
        """Whether the question is settled, so that it needs no more seeds."""
        return self.outcome in (BETTER, WORSE, SAME, AT_CEILING)

    @property
    def depends_on_p(self) -> bool:
        """Whether the verdict uses a p-value; others enter Holm's family with p = 1."""
        return self.outcome not in (NOT_COMPARABLE, TOO_FEW, NEITHER_LEARNED, DEGENERATE)

    @property
    def can_use_more_seeds(self) -> bool:
        """Whether more seeds could help; they cannot fix a leak, zero variance or short training."""
        return self.outcome not in (NOT_COMPARABLE, DEGENERATE, NEITHER_LEARNED, STILL_TRAINING)

    def __str__(self) -> str:
        return self.words


def decide(evidence: Evidence, question: Question) -> Verdict:
    """Return the verdict that the evidence supports."""
    if question.obstacle:
        words = NOT_COMPARABLE.format(question.obstacle)
        return Verdict(words, "the arms differ in more than the mechanism under test", NOT_COMPARABLE)
    if evidence.num_seeds < MIN_SEEDS:
        reason = f"{evidence.num_seeds} per arm; fewer than {MIN_SEEDS} do not give a usable estimate of the spread"
        return Verdict(TOO_FEW, reason, TOO_FEW)
    if evidence.neither_learned:
        return Verdict(NEITHER_LEARNED, evidence.neither_learned, NEITHER_LEARNED)
    if evidence.at_ceiling and not evidence.sign and not evidence.worst_sign:
        return Verdict(AT_CEILING, evidence.at_ceiling, AT_CEILING)
    if evidence.degenerate:
        return Verdict(DEGENERATE, evidence.degenerate, DEGENERATE)
    verdict = _decide_by_interval(evidence, question)
    return _qualify_as_still_training(verdict, question) if question.is_still_training else verdict


def _decide_by_interval(evidence: Evidence, question: Question) -> Verdict:
    failures, condition = evidence.failures, f" {question.condition}" if question.condition else ""
    if evidence.worst_sign and evidence.worst_sign != evidence.sign:
        outcome = BETTER if (evidence.worst_sign > 0) == question.higher_is_better else WORSE
        reason = f"{failures.text}; with failed runs counted as the worst result, p = {failures.worst_p:.2g}"
        return Verdict(outcome + condition, reason, outcome)
    qualifier, addition = "", ""
    if failures.is_uneven:
        finding = "has the same sign" if evidence.worst_sign else "is not found"
        qualifier = FINISHED
        addition = f"; {failures.text}, and with failed runs counted as the worst result the difference {finding}"
    if evidence.sign:
        return _decide_difference(evidence, question, qualifier + condition, addition)
    low, high = evidence.interval
    if max(-low, high) < question.threshold:
        reason = (
            f"the whole interval is closer to 0 than the smallest difference of interest, {question.shown_smallest}"
        )
        return Verdict(SAME + qualifier, reason + addition, SAME)
    return _decide_inconclusive(evidence, question)


def _decide_difference(evidence: Evidence, question: Question, qualifier: str, addition: str) -> Verdict:
    outcome = BETTER if (evidence.sign > 0) == question.higher_is_better else WORSE
    nearest, farthest = sorted(abs(end) for end in evidence.interval)
    smallest = question.shown_smallest
    if nearest >= question.threshold:
        words = outcome + AT_LEAST.format(smallest) + qualifier
        return Verdict(
            words,
            f"the whole interval is at least {smallest} away from 0, the smallest difference of interest{addition}",
            outcome,
        )
    if abs(evidence.difference) >= question.threshold:
        reason = (
            f"the interval excludes 0, and the measured difference is not below {smallest}, the smallest of interest"
        )
        return Verdict(outcome + qualifier, reason + addition, outcome)
    end = (
        "and so is the whole interval" if farthest < question.threshold else "though the interval includes larger ones"
    )
    reason = f"the interval excludes 0; the measured difference is below {smallest}, the smallest of interest, {end}"
    return Verdict(outcome + qualifier + BELOW, reason + addition, outcome)


def _decide_inconclusive(evidence: Evidence, question: Question) -> Verdict:
    more = evidence.more_seeds()
    reason = f"the interval contains both 0 and a difference of {question.shown_smallest}"
    if math.isinf(more):
        reason += "; no practical number of seeds suffices: the spread is too wide, or there are too few examples"
    elif isinstance(question.looks, str):
        reason += "; open-ended looks need more seeds than this"
    elif question.looks is not None and evidence.num_seeds >= max(question.looks):
        reason += "; this was the last declared look, so more seeds would be a new study"
    words = INCONCLUSIVE.format("∞" if math.isinf(more) else f"{more:.0f}")
    words = words.replace("about 1 more seeds", "about 1 more seed")
    return Verdict(words, reason, INCONCLUSIVE)


def _qualify_as_still_training(verdict: Verdict, question: Question) -> Verdict:
    words = INCONCLUSIVE.partition(" (")[0] if verdict.outcome == INCONCLUSIVE else verdict.words.removesuffix(BELOW)
    below = BELOW if verdict.words.endswith(BELOW) else ""
    reason = f"{question.late_gain_sentence}, more than half of {question.shown_smallest}; so far, {verdict.reason}"
    return Verdict(f"{STILL_TRAINING}, {words}{SO_FAR}{below}", reason, STILL_TRAINING)
