"""What must be said beside the numbers of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .account import show, show_p
from .known import has_learned, show_figure
from .question import ALPHA
from .verdict import NEITHER_LEARNED, STILL_TRAINING

if TYPE_CHECKING:
    from .comparison import Comparison

FEW_EXAMPLES = 100
"""Examples, documents or clusters below which a note warns: another draw of them may say something else."""
SKEWED = 1.0
"""Skewness beyond which a note says so; that of an exponential distribution is 2."""
LOW_POWER = 0.5
"""Power below which the expected exaggeration is printed."""


def write_notes(comparison: Comparison) -> tuple[str, ...]:
    """Write every note that applies."""
    parts = (_on_estimate, _on_skewness, _on_runs, _on_learning, _on_examples, _on_power)
    return tuple(note for part in parts for note in part(comparison))


def _on_estimate(comparison: Comparison) -> Iterator[str]:
    if comparison.estimate.note:
        yield comparison.estimate.note
    if comparison.question.looks == "open" and comparison.known.num_examples is not None:
        yield "looked at at any time, the interval speaks of other seeds, not of other examples"
    exact = comparison.exact
    if exact is not None and exact.smallest > ALPHA:
        yield f"with so few seeds the exact test beside it cannot bring its p below {exact.smallest:.3g}"


def _on_skewness(comparison: Comparison) -> Iterator[str]:
    weight, question = comparison.weight, comparison.question
    if weight.exact is not None:
        yield (
            f"the exact sign-flip test overrules t: {show_p(weight.exact.p)} in place of "
            f"{show_p(comparison.estimate.p)}, and the interval reaches as far as the exact one"
        )
    if question.looks == "open" or not abs(comparison.skewness) > SKEWED:
        return
    side, factor = ("upper", weight.skew.high) if comparison.skewness > 0 else ("lower", weight.skew.low)
    yield (
        f"the differences are skewed ({show(comparison.skewness)}), which t intervals do not allow for: the {side} end "
        f"is taken {factor:.2g} times as far"
    )


def _on_runs(comparison: Comparison) -> Iterator[str]:
    for arm in comparison.known.arms or ():
        if arm.failed:
            yield f"{len(arm.failed)} of {arm.num_runs} runs of the {arm.name} have no score"
        if arm.num_seeds > 1 and np.ptp(arm.per_seed) == 0:
            score = comparison.question.to_figure(float(arm.per_seed[0]))
            yield f"all seeds of the {arm.name} score the same, {score:.6g}"
    failures = comparison.known.failures
    if failures.is_uneven:
        yield (
            f"{failures.text}; with a failed run as the worst result p = {failures.worst_p:.2g}, and Fisher's exact "
            f"test of equal rates of failure has p = {failures.fisher_p:.2g}"
        )


def _on_learning(comparison: Comparison) -> Iterator[str]:
    question, words = comparison.question, comparison.verdict
    has_learned_by_arm = [has_learned(side, question) for side in comparison.known.moments]
    if words != NEITHER_LEARNED and not all(has_learned_by_arm):
        floor = show_figure(question.floor or 0.0)
        who = "the variant" if has_learned_by_arm[0] else "the baseline" if has_learned_by_arm[1] else "neither arm"
        verb = "is" if who == "neither arm" else "is not"
        yield f"{who} {verb} beyond the floor, {floor}, which a trivial strategy scores"
    if question.is_still_training and not words.startswith(STILL_TRAINING):
        yield f"still training: the last fifth gained {question.late_gain:.3g}{question.unit}"


def _on_examples(comparison: Comparison) -> Iterator[str]:
    known = comparison.known
    if known.num_clusters is not None and known.num_clusters < FEW_EXAMPLES:
        yield (
            f"{known.num_clusters} clusters of {known.num_examples} examples: fewer than {FEW_EXAMPLES} clusters say "
            "little about others"
        )
    elif known.num_clusters is None and known.num_examples is not None and known.num_examples < FEW_EXAMPLES:
        yield f"{known.num_examples} examples or documents: fewer than {FEW_EXAMPLES} say little about others"


def _on_power(comparison: Comparison) -> Iterator[str]:
    if comparison.question.looks == "open" or not comparison.power_at_smallest < LOW_POWER:
        return
    if not comparison.decision.is_difference:
        return
    yield (
        f"power is {comparison.power_at_smallest:.0%} for a true difference of {comparison.question.shown_smallest}: "
        f"where one is found, it is shown {comparison.exaggeration:.2g} × too large on average"
    )
