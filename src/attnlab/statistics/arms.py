"""Two arms compared: `compare` takes scores, `compare_corpus` what a metric of a corpus is made of, `compare_summaries`
what was published; all conclude alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .bootstrap import Metric, corpus_estimate, corpus_scores
from .clusters import merge_clusters
from .comparison import Comparison, conclude
from .estimate import estimate, welch_from
from .failures import Failures, count_failures
from .known import Known
from .question import ALPHA, Looks, Question, Scale
from .scores import Arm, read_arms
from .summary import Summary


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
    return conclude(estimate(*arms, paired), question, know(*arms, paired, question))


def compare_corpus(
    metric: Metric, baseline: Any, variant: Any, paired: bool = True, question: Question | None = None
) -> Comparison:
    """Compare two arms by a metric that is no mean over examples, such as BLEU; both are [seed, example, …]."""
    question = question or Question()
    tables = np.asarray(baseline), np.asarray(variant)
    scores = [corpus_scores(name, metric, table) for name, table in zip(("baseline", "variant"), tables, strict=True)]
    arms = read_arms(scores[0], scores[1], paired)
    found = corpus_estimate(metric, tables[0], tables[1], paired)
    return conclude(found, question, know(*arms, paired, question))


def compare_summaries(baseline: Summary, variant: Summary, question: Question | None = None) -> Comparison:
    """Compare two arms of which only mean, SD and n are known, by Welch's t."""
    question = question or Question()
    if question.scale == "log":
        raise StatisticsError("mean and SD of figures say nothing of their logs; give the score of each seed")
    baseline.check("baseline")
    variant.check("variant")
    known = Known(baseline, variant, False, Failures(), (baseline, variant))
    return conclude(welch_from(baseline.moments(), variant.moments()), question, known)


def know(baseline: Arm, variant: Arm, paired: bool, question: Question) -> Known:
    """Measure what is said beside an estimate."""
    moments = Summary.of(baseline), Summary.of(variant)
    shown = moments
    if question.scale == "log":
        shown = _summarize_figures(baseline, question), _summarize_figures(variant, question)
    failures = count_failures(baseline, variant, paired, question.higher_is_better)
    return Known(*shown, paired, failures, moments, (baseline, variant))


def _summarize_figures(arm: Arm, question: Question) -> Summary:
    figures = np.array([question.to_figure(score) for score in arm.per_seed.tolist()])
    return Summary.of(replace(arm, values=figures))
