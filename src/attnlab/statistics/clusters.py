"""Examples that are not independent, such as the questions of one article: each cluster becomes one example.

The mean over examples is a ratio, Σ sums/Σ sizes, linearised for its variance (Cochran 1977, chapter 6): a cluster's
value is R + k·(sum − R·size)·C/N with R the seed's mean, C clusters and N examples, so the mean over clusters is R. A
large cluster pulls R towards itself, which hides part of its spread: k and the degrees of freedom, fewer than C − 1,
correct for that (Bell and McCaffrey 2002). For clusters of equal size k is 1 and the degrees of freedom are C − 1.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .scores import ArmScores, Numbers


def merge_clusters(arm: ArmScores, clusters: Sequence[Any]) -> ArmScores:
    """Replace the examples of each cluster by one; scores stay [seed, example], with clusters as the examples."""
    if arm.num_examples is None:
        raise StatisticsError(
            f"clusters group the examples, but the {arm.name} has one number per seed: give its scores as "
            "[seed, example]"
        )
    if isinstance(clusters, str) or len(clusters) != arm.num_examples:
        raise StatisticsError(
            f"clusters needs one name per example: got {len(clusters)} names for {arm.num_examples} examples"
        )
    names, places = np.unique(np.array([str(name) for name in clusters]), return_inverse=True)
    if len(names) == 1:
        return replace(arm, values=arm.per_seed, num_clusters=1)
    sizes = np.bincount(places).astype(np.float64)
    sums = np.stack([np.bincount(places, weights=row) for row in arm.values])
    mean = arm.per_seed[:, None]
    inflation, df = correct_for_sizes(sizes)
    values = mean + inflation * (sums - mean * sizes) * (len(names) / arm.num_examples)
    return replace(arm, values=values, num_clusters=len(names), df_examples=df)


def correct_for_sizes(sizes: Numbers) -> tuple[float, float]:
    """Return k and the degrees of freedom of the clusters' share of the variance."""
    num, shares = len(sizes), sizes / sizes.sum()
    # size·(effect − mean effect over examples) as a matrix on the effects; shares keep it in range.
    residual = shares[:, None] * (np.eye(num) - shares[None, :])
    moments = residual.T @ residual
    expected = num / (num - 1) * float(np.trace(moments))
    df = float(np.trace(moments)) ** 2 / float((moments * moments).sum())
    return float(np.sqrt(shares @ shares / expected)), df
