"""Simulated scores of two arms whose true difference is known.

`effect` is the true difference in SDs of one seed's difference, 0 for arms that do not differ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .scores import Numbers

Rng = np.random.Generator
Pair = tuple[Any, Any]
"""Scores of baseline and variant."""
FAR = 10.0
"""How far below the others a bad seed scores, in SDs."""


@dataclass(frozen=True)
class Seeds:
    """How many seeds are drawn, and whether the arms share them; the SD of a seed's difference is 1."""

    num: int
    paired: bool = True


Draw = Callable[[Rng, Seeds, float], Pair]


def draw_equal(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw normal arms with the same SD; half of the variance of paired arms is shared."""
    own = rng.standard_normal((2, seeds.num)) / math.sqrt(2)
    shared = rng.standard_normal(seeds.num) / math.sqrt(2) if seeds.paired else np.zeros(seeds.num)
    return shared + own[0], shared + own[1] + effect


def draw_wider(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw a variant with ten times the baseline's SD."""
    baseline, variant = draw_equal(rng, seeds)
    return baseline, 10 * variant + 7.8 * effect


def draw_bad_seeds(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw arms in which a fifth of the seeds scores far below, at the same rate in both."""
    baseline, variant = draw_equal(rng, seeds, effect * math.sqrt(1 + 2 * FAR**2 * 0.2 * 0.8))
    bad = rng.random((2, seeds.num)) < 0.2
    return baseline - FAR * bad[0], variant - FAR * bad[1]


def draw_bad_variant(rng: Rng, seeds: Seeds, effect: float = 0.0, *, share: float) -> Pair:
    """Draw a variant in which a share of the seeds scores far below; the others make the means equal."""
    baseline, variant = draw_equal(rng, seeds, effect * math.sqrt(1 + FAR**2 * share * (1 - share)))
    return baseline, variant + FAR * share - FAR * (rng.random(seeds.num) < share)


def draw_diverging(rng: Rng, seeds: Seeds, effect: float = 0.0, *, share: float) -> Pair:
    """Draw a variant whose worst runs diverge and have no score, so that the others look better."""
    baseline, variant = draw_equal(rng, seeds, effect)
    # The SD of one paired arm is 1; −0.84 and −0.52 SDs cut off the worst 20 and 30 %.
    # The best run always has a score: without any there would be nothing to compare.
    limit = min(effect - {0.2: 0.8416, 0.3: 0.5244}[share], float(variant.max()))
    return baseline, [None if score < limit else float(score) for score in variant]


def draw_gamma(rng: Rng, seeds: Seeds, effect: float = 0.0, *, shape: float) -> Pair:
    """Draw skewed differences of mean 0 and SD 1 from a gamma distribution."""
    return _add_skewed(rng, seeds, effect, (rng.gamma(shape, size=seeds.num) - shape) / math.sqrt(shape))


def draw_lognormal(rng: Rng, seeds: Seeds, effect: float = 0.0, *, sigma: float) -> Pair:
    """Draw skewed differences of mean 0 and SD 1 from a lognormal distribution."""
    mean, variance = math.exp(sigma**2 / 2), math.exp(sigma**2)
    skewed = (np.exp(sigma * rng.standard_normal(seeds.num)) - mean) / (mean * math.sqrt(variance - 1))
    return _add_skewed(rng, seeds, effect, skewed)


def _add_skewed(rng: Rng, seeds: Seeds, effect: float, skewed: Numbers) -> Pair:
    # The effect points away from the long tail, where it is harder to find.
    baseline = rng.standard_normal(seeds.num)
    if not seeds.paired:
        return baseline / math.sqrt(2), skewed / math.sqrt(2) - effect
    return baseline, baseline + skewed - effect


def draw_examples(rng: Rng, seeds: Seeds, effect: float = 0.0, num_examples: int = 200) -> Pair:
    """Draw scores [seed, example] that vary with the seed, with the example, and at random.

    Without an effect the arms may differ on these examples, but not on the population of examples.
    """
    by_seed = 0.5 * np.stack(draw_equal(rng, seeds, effect))[:, :, None]
    by_example = rng.standard_normal((2, 1, num_examples))
    scores = by_seed + by_example + rng.standard_normal((2, seeds.num, num_examples))
    return scores[0], scores[1]


def draw_documents(rng: Rng, seeds: Seeds, effect: float = 0.0, *, num: int, is_averaged: bool = False) -> Pair:
    """Draw log perplexities of few documents, between which the difference varies more than over seeds."""
    by_document = rng.standard_normal(num) * 0.3 + 3.5
    noise = 0.01 * rng.standard_normal((seeds.num, num)) + 0.01 * rng.standard_normal((seeds.num, 1))
    difference = 0.05 * rng.standard_normal(num) + 0.05 * effect
    baseline = by_document + 0.02 * rng.standard_normal((seeds.num, 1)) + noise[::-1]
    variant = baseline + difference + noise
    return (baseline.mean(axis=1), variant.mean(axis=1)) if is_averaged else (baseline, variant)


def draw_clusters(rng: Rng, seeds: Seeds, effect: float = 0.0, *, sizes: Numbers, cluster_sd: float = 0.5) -> Pair:
    """Draw scores of questions in clusters, such as articles, between which the difference varies."""
    names = np.repeat(np.arange(len(sizes)), sizes.astype(int))
    baseline = rng.standard_normal(len(names)) + rng.standard_normal((seeds.num, len(names)))
    by_question = cluster_sd * rng.standard_normal(len(sizes))[names] + rng.standard_normal(len(names))
    noise = rng.standard_normal((seeds.num, len(names))) + 0.05 * rng.standard_normal((seeds.num, 1))
    return baseline, baseline + by_question + noise + cluster_sd * effect


def draw_half(rng: Rng, seeds: Seeds, effect: float) -> Pair:
    """Draw a true difference of half of a threshold of 1."""
    # With this SD a t test of five seeds finds it in 7 % of cases.
    baseline, variant = draw_equal(rng, seeds)
    return baseline, baseline + 2 * (variant - baseline) + 0.5 + effect
