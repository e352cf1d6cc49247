"""Simulated arms whose true difference is known: what an analysis is tried on.

`effect` is the true difference in SDs of one seed's difference, 0 for arms that do not differ.
"""

from __future__ import annotations

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
    """How many seeds are drawn, and whether the arms share them; each arm has the SD that makes differences' SD 1."""

    num: int
    paired: bool = True

    def draw(self, rng: Rng, effect: float = 0.0) -> tuple[Numbers, Numbers]:
        """Draw normal arms; what paired arms share is as large as what each has of its own."""
        own = rng.standard_normal((2, self.num)) / math.sqrt(2)
        shared = rng.standard_normal(self.num) / math.sqrt(2) if self.paired else np.zeros(self.num)
        return shared + own[0], shared + own[1] + effect


Draw = Callable[[Rng, Seeds, float], Pair]


def draw_equal(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw normal arms of one SD."""
    return seeds.draw(rng, effect)


def draw_wider(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw a variant of ten times the baseline's SD."""
    baseline, variant = seeds.draw(rng)
    return baseline, 10 * variant + 7.8 * effect


def draw_bad_seeds(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw arms of which a fifth of the seeds scores far below, in both alike."""
    baseline, variant = seeds.draw(rng, effect)
    bad = rng.random((2, seeds.num)) < 0.2
    return baseline - FAR * bad[0], variant - FAR * bad[1]


def draw_bad_variant(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw a variant of which half of the seeds score far below and the others make up for it: the means are equal."""
    baseline, variant = seeds.draw(rng, effect)
    return baseline, variant + FAR * 0.5 - FAR * (rng.random(seeds.num) < 0.5)


def draw_rarely_bad_variant(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
    """Draw as `draw_bad_variant` does, with one seed in five scoring low: few seeds often show none that does."""
    baseline, variant = seeds.draw(rng, effect)
    return baseline, variant + FAR * 0.2 - FAR * (rng.random(seeds.num) < 0.2)


def draw_diverging(share: float) -> Draw:
    """Make a draw of a variant whose worst runs diverge and have no score, so that the others look better."""

    def draw(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
        baseline, variant = seeds.draw(rng, effect)
        # The SD of one arm is 1 if seeds are paired; −0.84 and −0.52 SDs leave out the worst 20 and 30 %.
        # The best run always has a score: without any there would be nothing to compare.
        limit = min(effect - {0.2: 0.8416, 0.3: 0.5244}[share], float(variant.max()))
        return baseline, [None if score < limit else float(score) for score in variant]

    return draw


def draw_skewed(name: str, parameter: float = 1.0) -> Draw:
    """Make a draw of skewed differences of mean 0 and SD 1: gamma of a shape, or lognormal of a σ."""

    def draw(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
        if name == "gamma":
            skewed = (rng.gamma(parameter, size=seeds.num) - parameter) / math.sqrt(parameter)
        else:
            mean, variance = math.exp(parameter**2 / 2), math.exp(parameter**2)
            skewed = (np.exp(parameter * rng.standard_normal(seeds.num)) - mean) / (mean * math.sqrt(variance - 1))
        # An effect against the long tail: the harder one to find.
        baseline = rng.standard_normal(seeds.num) if seeds.paired else np.zeros(seeds.num)
        if not seeds.paired:
            return rng.standard_normal(seeds.num) / math.sqrt(2), skewed / math.sqrt(2) - effect
        return baseline, baseline + skewed - effect

    return draw


def draw_examples(rng: Rng, seeds: Seeds, effect: float = 0.0, num_examples: int = 200) -> Pair:
    """Draw scores [seed, example] that vary with the seed, with the example, and at random.

    Over these examples the arms may differ; over all that there could be they do not.
    """
    by_seed = 0.5 * np.stack(seeds.draw(rng, effect))[:, :, None]
    by_example = rng.standard_normal((2, 1, num_examples))
    scores = by_seed + by_example + rng.standard_normal((2, seeds.num, num_examples))
    return scores[0], scores[1]


def draw_documents(num: int) -> Draw:
    """Make a draw of log perplexities of few documents, on which the arms differ more than over seeds."""

    def draw(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
        by_document = rng.standard_normal(num) * 0.3 + 3.5
        noise = 0.01 * rng.standard_normal((seeds.num, num)) + 0.01 * rng.standard_normal((seeds.num, 1))
        difference = 0.05 * rng.standard_normal(num) + 0.05 * effect
        baseline = by_document + 0.02 * rng.standard_normal((seeds.num, 1)) + noise[::-1]
        return baseline, baseline + difference + noise

    return draw


def draw_clusters(sizes: Numbers, cluster_sd: float = 0.5) -> Draw:
    """Make a draw of scores of questions whose clusters, such as articles, differ in which arm they favour."""
    names = np.repeat(np.arange(len(sizes)), sizes.astype(int))

    def draw(rng: Rng, seeds: Seeds, effect: float = 0.0) -> Pair:
        baseline = rng.standard_normal(len(names)) + rng.standard_normal((seeds.num, len(names)))
        by_question = cluster_sd * rng.standard_normal(len(sizes))[names] + rng.standard_normal(len(names))
        noise = rng.standard_normal((seeds.num, len(names))) + 0.05 * rng.standard_normal((seeds.num, 1))
        return baseline, baseline + by_question + noise + cluster_sd * effect

    return draw


def draw_one_seed(rng: Rng, num_examples: int, seed_sd: float) -> Pair:
    """Draw the scores of one run per arm, as F1 in percent has them: seeds move the mean, examples vary by 40."""
    shift = seed_sd * rng.standard_normal((2, 1))
    scores = shift + 40.0 / math.sqrt(2) * rng.standard_normal((2, num_examples))
    return scores[0], scores[1]
