"""Comparisons of two arms: `compare` takes scores, `compare_corpus` the parts of a corpus metric, `compare_summaries`
published means. A family decides several comparisons together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .arm_data import ArmData
from .bootstrap import Metric, corpus_estimate, corpus_scores
from .clusters import merge_clusters
from .comparison import Comparison, conclude
from .estimate import Estimate, estimate, welch_from
from .failures import Failures, count_failures
from .families import Key, Role, adjust
from .question import ALPHA, Looks, Question, Scale
from .scores import ArmScores, Summary, read_arms
from .skewness import measure_skew


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
    condition: str = "",
    limits: tuple[float, float] | None = None,
    late_gain_of: str = "",
) -> Comparison:
    """Compare two arms over seeds.

    Scores are one number per seed, or rows [seed, example]; in order, or in a dict by the seed's name. None is a run
    that failed. paired: the same place or name is the same seed in both arms. smallest: the smallest difference worth
    having, in units of the metric. alpha: false-positive rate. looks: (5, 10, 15, 20) if looks were declared, "open" to
    look after every seed. obstacle: why the arms cannot be compared, such as a leak. clusters: a name per example;
    examples with the same name are not independent. scale: "log" if scores are natural logs, such as log perplexity;
    `smallest` and all differences are then in percent. floor, ceiling: the scores of a trivial strategy and of a
    perfect model. late_gain: the larger improvement of the two arms in the last fifth of training, in units of
    `smallest`; late_gain_of: which arm's it is.
    condition: how the arms were made comparable, said with BETTER and WORSE, such as AS TUNED (3 trials).
    limits: the lowest and the highest possible score, such as (0, 100); intervals are shown within their difference.
    """
    question = Question(
        smallest,
        higher_is_better,
        alpha,
        looks,
        obstacle,
        scale,
        floor,
        ceiling,
        late_gain,
        condition,
        limits,
        late_gain_of,
    )
    arms = read_arms(baseline_scores, variant_scores, paired)
    if clusters is not None:
        arms = merge_clusters(arms[0], clusters), merge_clusters(arms[1], clusters)
    return _conclude(estimate(*arms, paired), arms, paired, question)


def compare_corpus(
    metric: Metric, baseline: Any, variant: Any, paired: bool = True, question: Question | None = None
) -> Comparison:
    """Compare two arms by a metric that is not a mean over examples, such as BLEU; both are [seed, example, …]."""
    tables = np.asarray(baseline), np.asarray(variant)
    scores = [corpus_scores(name, metric, table) for name, table in zip(("baseline", "variant"), tables, strict=True)]
    arms = read_arms(scores[0], scores[1], paired)
    return _conclude(corpus_estimate(metric, *tables, paired), arms, paired, question or Question())


def compare_summaries(baseline: Summary, variant: Summary, question: Question | None = None) -> Comparison:
    """Compare two arms by Welch's t if only mean, SD and n are known."""
    question = question or Question()
    if question.scale == "log":
        raise StatisticsError(
            "the log scale needs the score of each seed: mean and SD of figures do not give those of their logs"
        )
    baseline.check("baseline")
    variant.check("variant")
    data = ArmData(baseline, variant, False, Failures(), (baseline, variant))
    return conclude(welch_from(baseline.moments(), variant.moments()), question, data)


def compare_many(
    baseline_scores: Any, variants: Mapping[str, Any], paired: bool = True, question: Question | None = None,
    role: Role = "primary",
) -> dict[str, Comparison]:  # fmt: skip
    """Compare each variant with the baseline as one family; role: whether the metric is primary or exploratory."""
    question = question or Question()
    if not isinstance(variants, Mapping) or not variants:
        raise StatisticsError("compare_many needs the variants' scores by name: {'cosine': […], 'additive': […]}")
    alone = {name: compare(baseline_scores, scores, paired, **vars(question)) for name, scores in variants.items()}
    return conclude_family(alone, question.alpha, role)


def conclude_family(
    comparisons: Mapping[Key, Comparison], alpha: float = ALPHA, role: Role = "primary"
) -> dict[Key, Comparison]:
    """Decide comparisons again as one family; they may be of different figures, sizes and phases.

    A verdict that does not depend on p, such as NOT COMPARABLE, counts with p = 1. Of a comparison with declared looks,
    the family adjusts the smallest alpha at which its look would end it.
    """
    ps = {
        key: one.question.family_p(one.p, one.data.num_seeds, one.data.num_runs) if one.decision.depends_on_p else 1.0
        for key, one in comparisons.items()
    }
    adjusted = adjust(ps, role, alpha)
    return {
        key: conclude(one.estimate, replace(one.question, alpha=adjusted[key].level), one.data, adjusted[key])
        for key, one in comparisons.items()
    }


def _conclude(estimate: Estimate, arms: tuple[ArmScores, ArmScores], paired: bool, question: Question) -> Comparison:
    skew = measure_skew(estimate, arms, paired)
    baseline, variant = (replace(arm, values=arm.per_seed) for arm in arms)
    values = [np.array([question.to_metric(score) for score in arm.values.tolist()]) for arm in (baseline, variant)]
    failures = count_failures(baseline, variant, paired, question.higher_is_better)
    moments, scores = (Summary.of(baseline.values), Summary.of(variant.values)), (baseline, variant)
    data = ArmData(Summary.of(values[0]), Summary.of(values[1]), paired, failures, moments, scores, skew)
    return conclude(estimate, question, data)
