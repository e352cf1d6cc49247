"""Two arms compared: `compare` takes scores, `compare_corpus` what a metric of a corpus is made of, `compare_summaries`
what was published; all conclude alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .account import plain, show_p, signed
from .bootstrap import Metric, corpus_estimate, corpus_scores
from .clusters import merge_clusters
from .comparison import Comparison, conclude
from .estimate import Estimate, estimate, welch_from
from .failures import Failures, count_failures
from .families import Adjusted, Key, Role, adjust
from .known import Known
from .question import ALPHA, Looks, Question, Scale
from .scores import ArmScores, Summary, read_arms
from .skewness import measure_skew
from .verdict import DEGENERATE, NEITHER_LEARNED, NOT_COMPARABLE, TOO_FEW

SHOW_NOTHING = (NOT_COMPARABLE, TOO_FEW, NEITHER_LEARNED, DEGENERATE)
"""Outcomes that no p leads to: in a family they count with a p of 1."""


@dataclass(frozen=True)
class Family:
    """Comparisons by name that are one family, and what being many does to each p."""

    role: Role
    comparisons: Mapping[str, Comparison]
    adjusted: Mapping[str, Adjusted]

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "role": self.role,
            "comparisons": {name: comparison.record() for name, comparison in self.comparisons.items()},
            "adjusted": {name: plain(vars(adjusted)) for name, adjusted in self.adjusted.items()},
        }

    def __str__(self) -> str:
        lines = [f"{self.role}, {len(self.comparisons)} comparisons, {self.method}"]
        for name, comparison in self.comparisons.items():
            low, high = comparison.interval
            lines.append(
                f"  {name}: {comparison.verdict}; {signed(comparison.difference)} [{signed(low)}, {signed(high)}], "
                f"{show_p(comparison.p)}, adjusted {show_p(self.adjusted[name].adjusted)}; {comparison.stability}"
            )
        return "\n".join(lines)

    @property
    def method(self) -> str:
        """How the family was adjusted for."""
        return next(iter(self.adjusted.values())).method if self.adjusted else ""


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
    clusters: Sequence[Any] | None = None,
    scale: Scale = "linear",
    floor: float | None = None,
    ceiling: float | None = None,
    late_gain: float | None = None,
) -> Comparison:
    """Compare two arms over seeds and say what the evidence carries.

    Scores are one number per seed, or rows [seed, example]; in order, or by the seed's name in a dict. None is a run
    that failed. paired: the same place or name is the same seed in both arms. smallest: the smallest difference worth
    having, in units of the metric. alpha: false-positive rate. looks: (5, 10, 15, 20) if looks were declared, "open" to
    look after every seed. obstacle: why the arms cannot be compared, such as a leak. clusters: a name per example;
    examples of one name are not independent. scale: "log" if scores are natural logs, such as log perplexity;
    `smallest` and all differences are then in percent. floor, ceiling: what a trivial strategy and a perfect model
    score. late_gain: how much the arms still improved in the last fifth of training, in units of `smallest`.
    """
    question = Question(
        smallest, higher_is_better, alpha, looks, obstacle, scale, floor=floor, ceiling=ceiling, late_gain=late_gain
    )
    arms = read_arms(baseline_scores, variant_scores, paired)
    if clusters is not None:
        arms = merge_clusters(arms[0], clusters), merge_clusters(arms[1], clusters)
    return _conclude(estimate(*arms, paired), arms, paired, question)


def compare_corpus(
    metric: Metric, baseline: Any, variant: Any, paired: bool = True, question: Question | None = None
) -> Comparison:
    """Compare two arms by a metric that is no mean over examples, such as BLEU; both are [seed, example, …]."""
    question = question or Question()
    tables = np.asarray(baseline), np.asarray(variant)
    scores = [corpus_scores(name, metric, table) for name, table in zip(("baseline", "variant"), tables, strict=True)]
    arms = read_arms(scores[0], scores[1], paired)
    return _conclude(corpus_estimate(metric, tables[0], tables[1], paired), arms, paired, question)


def compare_summaries(baseline: Summary, variant: Summary, question: Question | None = None) -> Comparison:
    """Compare two arms of which only mean, SD and n are known, by Welch's t."""
    question = question or Question()
    if question.scale == "log":
        raise StatisticsError("mean and SD of figures say nothing of their logs; give the score of each seed")
    baseline.check("baseline")
    variant.check("variant")
    known = Known(baseline, variant, False, Failures(), (baseline, variant))
    return conclude(welch_from(baseline.moments(), variant.moments()), question, known)


def compare_many(
    baseline_scores: Any,
    variants: Mapping[str, Any],
    paired: bool = True,
    question: Question | None = None,
    role: Role = "primary",
) -> Family:
    """Compare each variant with the baseline; the metric is the study's primary one, or exploratory."""
    asked = question or Question()
    if not isinstance(variants, Mapping) or not variants:
        raise StatisticsError("compare_many takes the variants' scores by name: {'cosine': […], 'additive': […]}")
    settings = {name: value for name, value in vars(asked).items() if name != "smallest"}
    alone = {
        name: compare(baseline_scores, scores, paired, asked.smallest, **settings) for name, scores in variants.items()
    }
    settled = conclude_family(alone, asked.alpha, role)
    return Family(role, settled, {name: found.family for name, found in settled.items() if found.family is not None})


def conclude_family(
    comparisons: Mapping[Key, Comparison], alpha: float = ALPHA, role: Role = "primary"
) -> dict[Key, Comparison]:
    """Decide every comparison again as one of a family, whatever figures, sizes and phases they are of.

    What shows nothing, such as NOT COMPARABLE, counts with a p of 1. Declared looks and open-ended ones may be among
    them: the family adjusts the smallest alpha at which each would end its comparison.
    """
    adjusted = adjust({key: family_p(comparison) for key, comparison in comparisons.items()}, role, alpha)
    return {key: found.redecide(adjusted[key].level, adjusted[key]) for key, found in comparisons.items()}


def family_p(comparison: Comparison) -> float:
    """Return the p that a family adjusts: the smallest alpha at which the verdict would be a difference."""
    if comparison.decision.outcome in SHOW_NOTHING:
        return 1.0
    known = comparison.known
    return comparison.question.family_p(comparison.p, known.num_seeds, known.num_runs)


def _conclude(found: Estimate, arms: tuple[ArmScores, ArmScores], paired: bool, question: Question) -> Comparison:
    skew = measure_skew(found, arms, paired)
    baseline, variant = (arm.without_examples() for arm in arms)
    moments = shown = Summary.of(baseline), Summary.of(variant)
    if question.scale == "log":
        shown = _summarize_figures(baseline, question), _summarize_figures(variant, question)
    failures = count_failures(baseline, variant, paired, question.higher_is_better)
    return conclude(found, question, Known(*shown, paired, failures, moments, (baseline, variant), skew))


def _summarize_figures(arm: ArmScores, question: Question) -> Summary:
    figures = np.array([question.to_figure(score) for score in arm.values.tolist()])
    return Summary.of(replace(arm, values=figures))
