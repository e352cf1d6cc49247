"""Whether the arms learned the task at all, and whether they have any room left: the floor and the ceiling of a figure.

The floor is what the best trivial strategy scores. An arm has learned if its own 95 % t interval over seeds
lies beyond the floor.
"""

from __future__ import annotations

import math

from scipy import stats

from .question import ALPHA, Question
from .summary import Summary

PERFECT = (1.0, 100.0)
"""Best scores of shares and percentages, taken as the ceiling if none is given and every seed has it."""


def has_learned(arm: Summary, question: Question) -> bool:
    """Tell whether an arm's interval clears the floor; one seed is judged by its score. True without a floor."""
    if question.floor is None:
        return True
    mean, sd, n = arm.moments()
    reach = 0.0 if math.isnan(sd) else float(stats.t.isf(ALPHA / 2, n - 1)) * sd / math.sqrt(n)
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
