"""Arms that do not differ, drawn at random: what an honest analysis must find nothing in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .scores import Numbers

Pair = tuple[Numbers, Numbers]
Rng = np.random.Generator

FAR = 10.0
"""How far below the others a failed seed scores, in SDs."""


@dataclass(frozen=True)
class Seeds:
    """How many seeds are drawn, and how much the arms share through them: none of it where they are not paired."""

    num: int
    paired: bool = True

    def draw(self, rng: Rng) -> Pair:
        """Draw normal arms of one SD, correlated by ½ where paired."""
        shared, own = rng.standard_normal(self.num), rng.standard_normal((2, self.num))
        scores = (shared + own) / math.sqrt(2) if self.paired else own
        return scores[0], scores[1]


def equal(rng: Rng, seeds: Seeds) -> Pair:
    """Draw normal arms of one SD."""
    return seeds.draw(rng)


def wider(rng: Rng, seeds: Seeds) -> Pair:
    """Draw a variant of ten times the baseline's SD."""
    baseline, variant = seeds.draw(rng)
    return baseline, 10 * variant


def failing(rng: Rng, seeds: Seeds) -> Pair:
    """Draw arms of which a fifth of the seeds scores far below, in both alike."""
    baseline, variant = seeds.draw(rng)
    failed = rng.random((2, seeds.num)) < 0.2
    return baseline - FAR * failed[0], variant - FAR * failed[1]


def failing_variant(rng: Rng, seeds: Seeds, share: float = 0.5) -> Pair:
    """Draw a variant that alone fails, and whose other seeds make up for it: the means are equal."""
    baseline, variant = seeds.draw(rng)
    return baseline, variant + FAR * share - FAR * (rng.random(seeds.num) < share)


def rarely_failing_variant(rng: Rng, seeds: Seeds) -> Pair:
    """Draw as `failing_variant` does, with one seed in five failing: few seeds often show none that does."""
    return failing_variant(rng, seeds, share=0.2)


def examples(rng: Rng, seeds: Seeds, num_examples: int = 200) -> Pair:
    """Draw scores [seed, example] that vary with the seed, with the example, and at random.

    Over these examples the arms may differ; over all that there could be they do not.
    """
    by_seed = 0.5 * np.stack(seeds.draw(rng))[:, :, None]
    by_example = 2.0 * rng.standard_normal((2, 1, num_examples))
    scores = by_seed + by_example + rng.standard_normal((2, seeds.num, num_examples))
    return scores[0], scores[1]


def one_seed(rng: Rng, num_examples: int, seed_sd: float) -> Pair:
    """Draw the scores of one run an arm, as F1 in percent has them: seeds move the mean, examples vary by 40."""
    shift = seed_sd * rng.standard_normal((2, 1))
    scores = shift + 40.0 / math.sqrt(2) * rng.standard_normal((2, num_examples))
    return scores[0], scores[1]
