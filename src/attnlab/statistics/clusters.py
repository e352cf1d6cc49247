"""Examples that are not independent, such as the questions of one article: each cluster becomes one example.

The mean over examples is a ratio, Σ sums/Σ sizes, since clusters differ in size. A cluster's value is linearised for
its variance (Cochran 1977, chapter 6): R + (sum − R·size)·C/N with R the seed's mean, C clusters and N examples. The
mean over clusters is R, so the figure stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.errors import StatisticsError

from .scores import Arm


def merge_clusters(arm: Arm, clusters: Sequence[Any]) -> Arm:
    """Replace the examples of each cluster by one; scores stay [seed, example], with clusters as the examples."""
    if arm.num_examples is None:
        raise StatisticsError(
            f"clusters say which examples belong together, and the {arm.name} has one number per seed: give its "
            "scores as [seed, example]"
        )
    if isinstance(clusters, str) or len(clusters) != arm.num_examples:
        raise StatisticsError(
            f"clusters needs one name per example: {len(clusters)} came for {arm.num_examples} examples"
        )
    names, places = np.unique(np.array([str(name) for name in clusters]), return_inverse=True)
    if len(names) == 1:
        return replace(arm, values=arm.per_seed, num_merged=arm.num_examples)
    sizes = np.bincount(places).astype(np.float64)
    sums = np.stack([np.bincount(places, weights=row) for row in arm.values])
    figure = arm.per_seed[:, None]
    values = figure + (sums - figure * sizes) * (len(names) / arm.num_examples)
    return replace(arm, values=values, num_merged=arm.num_examples)
