"""Remarks that are printed beside the numbers of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .arm_data import has_learned, is_beyond_floor
from .formatting import show, show_p, show_value
from .skewness import MIN_SEEDS_FOR_EXACT
from .verdict import NEITHER_LEARNED, STILL_TRAINING

if TYPE_CHECKING:
    from .comparison import Comparison

FEW_EXAMPLES = 100
"""Examples, documents or clusters below which a note warns that others may give another result."""
SKEWED = 1.0
"""Skewness above which there is a note; an exponential distribution has 2."""
LOW_POWER = 0.5
"""Power below which the expected exaggeration is printed."""


def write_notes(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    """Write every note that applies, by kind."""
    return {kind: tuple(write(comparison)) for kind, write in WRITERS.items()}


def _note_method(comparison: Comparison) -> Iterator[str]:
    if comparison.estimate.note:
        yield comparison.estimate.note
    if comparison.question.looks == "open" and comparison.data.num_examples is not None:
        yield "with open-ended looks the interval generalizes to other seeds, not to other examples"


def _note_skewness(comparison: Comparison) -> Iterator[str]:
    inference, skewness = comparison.inference, comparison.skewness
    if inference.exact is not None:
        yield (
            f"the exact sign-flip test overrules t: {show_p(inference.exact.p)} instead of "
            f"{show_p(comparison.estimate.p)}, and the interval is extended to the exact one"
        )
    if comparison.question.looks != "open" and abs(skewness) > SKEWED:
        side, factor = ("upper", inference.skew.high) if skewness > 0 else ("lower", inference.skew.low)
        yield (
            f"the differences are skewed ({show(skewness)}), which a t interval does not account for: its {side} half "
            f"is widened by a factor of {factor:.2g}"
        )


def _note_widening(comparison: Comparison) -> Iterator[str]:
    if comparison.question.looks != "open" and comparison.plain_p < comparison.level <= comparison.p:
        more = ""
        if comparison.data.num_seeds < MIN_SEEDS_FOR_EXACT:
            more = f"; {MIN_SEEDS_FOR_EXACT} seeds or more are widened less"
        yield (
            f"a plain t test has {show_p(comparison.plain_p)} and would say that the arms differ: it errs too often "
            f"with scores that are few or skewed, so that interval and p are widened{more}"
        )


def _note_missing_scores(comparison: Comparison) -> Iterator[str]:
    for arm in comparison.data.scores or ():
        if arm.failed:
            yield f"{len(arm.failed)} of {arm.num_runs} runs of the {arm.name} have no score"


def _note_runs(comparison: Comparison) -> Iterator[str]:
    for arm in comparison.data.scores or ():
        if arm.num_seeds > 1 and np.ptp(arm.per_seed) == 0:
            score = comparison.question.to_metric(float(arm.per_seed[0]))
            yield f"all seeds of the {arm.name} score the same, {score:.6g}"
    failures = comparison.data.failures
    if failures.is_uneven:
        yield (
            f"{failures.text}; with failed runs counted as the worst result p = {failures.worst_p:.2g}, and Fisher's "
            f"exact test of equal failure rates has p = {failures.fisher_p:.2g}"
        )


def _note_learning(comparison: Comparison) -> Iterator[str]:
    question, words = comparison.question, comparison.verdict
    has_learned_by_arm = [has_learned(summary, question) for summary in comparison.data.moments]
    if words != NEITHER_LEARNED and not all(has_learned_by_arm):
        who = {(True, False): "the variant is not", (False, True): "the baseline is not"}
        subject = who.get((has_learned_by_arm[0], has_learned_by_arm[1]), "neither arm is")
        arms = zip(("baseline", "variant"), comparison.data.moments, has_learned_by_arm, strict=True)
        near = [
            name for name, summary, is_learned in arms
            if not is_learned and is_beyond_floor(summary.mean, question)
        ]  # fmt: skip
        but = f"; the mean of the {' and the '.join(near)} is, its 95 % interval over seeds is not" if near else ""
        yield f"{subject} beyond the floor, {show_value(question.floor or 0.0)}, which a trivial strategy scores{but}"
    if question.is_still_training and not words.startswith(STILL_TRAINING):
        yield f"still training: {question.late_gain_sentence}"


def _note_examples(comparison: Comparison) -> Iterator[str]:
    num_examples, num_clusters = comparison.data.num_examples, comparison.data.num_clusters
    if num_clusters is not None and num_clusters < FEW_EXAMPLES:
        yield (
            f"{num_clusters} clusters of {num_examples} examples: fewer than {FEW_EXAMPLES} clusters say little about "
            "others"
        )
    elif num_clusters is None and num_examples is not None and num_examples < FEW_EXAMPLES:
        yield f"{num_examples} examples or documents: fewer than {FEW_EXAMPLES} say little about others"


def _note_power(comparison: Comparison) -> Iterator[str]:
    is_found = comparison.question.looks != "open" and comparison.decision.is_difference
    if is_found and comparison.power_at_smallest < LOW_POWER:
        yield (
            f"these seeds have {comparison.power_at_smallest:.0%} power for a true difference of "
            f"{comparison.question.shown_smallest}; with so little power, a difference that is found is on average "
            f"{comparison.exaggeration:.2g} times the true one"
        )


WRITERS: dict[str, Callable[[Comparison], Iterator[str]]] = {
    "method": _note_method, "skewness": _note_skewness, "widening": _note_widening,
    "missing scores": _note_missing_scores, "runs": _note_runs, "learning": _note_learning, "examples": _note_examples,
    "power": _note_power,
}  # fmt: skip
