"""Metrics of a whole corpus, such as perplexity, BLEU or Matthews: a two-way bootstrap over seeds and examples.

Its standard error times √(n/(n − 1)), with t of n − 1 degrees of freedom (Owen 2007 on resampling both ways). No
percentiles of it: over three seeds they find differences in a quarter of all comparisons of nothing with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import StatisticsError

from .estimate import Estimate, Noise, paired_t, welch
from .scores import Numbers

Metric = Callable[[NDArray[Any]], float]
"""Takes what is known of the examples of one run, [example, …], and returns its figure."""
NUM_DRAWS = 1000


def corpus_scores(name: str, metric: Metric, runs: NDArray[Any]) -> Numbers:
    """Return the figure of each run; `runs` is [seed, example, …]."""
    if runs.ndim < 2 or runs.shape[0] == 0 or runs.shape[1] == 0:
        raise StatisticsError(
            f"a metric of a corpus needs [seed, example, …] of the {name}, and the shape {list(runs.shape)} came"
        )
    figures = np.array([float(metric(run)) for run in runs])
    if not np.isfinite(figures).all():
        seed = int(np.argmin(np.isfinite(figures)))
        raise StatisticsError(f"the metric of run number {seed + 1} of the {name} is {figures[seed]}")
    return figures


def corpus_estimate(
    metric: Metric, baseline: NDArray[Any], variant: NDArray[Any], paired: bool = True, num_draws: int = NUM_DRAWS
) -> Estimate:
    """Estimate the difference of a metric that is no mean over examples."""
    figures = [corpus_scores(*args) for args in (("baseline", metric, baseline), ("variant", metric, variant))]
    if baseline.shape[1] != variant.shape[1]:
        raise StatisticsError(
            f"the baseline has {baseline.shape[1]} examples and the variant {variant.shape[1]}; both must be asked "
            "the same"
        )
    n = min(len(baseline), len(variant))
    difference = float(figures[1].mean() - figures[0].mean())
    df = n - 1.0 if n > 1 else math.nan
    if n < 2:
        return Estimate(difference, math.nan, df, "two-way bootstrap", Noise(math.nan, df))
    draws = _draw(metric, (baseline, variant), paired, num_draws)
    se = float(np.std(draws, ddof=1)) * math.sqrt(n / (n - 1))
    per_seed = (paired_t(figures[1] - figures[0]) if paired else welch(*figures)).noise.per_seed
    noise = Noise(per_seed, df, fixed=max(0.0, se**2 - per_seed / n))
    return Estimate(difference, se, df, "two-way bootstrap", noise)


def _draw(metric: Metric, runs: tuple[NDArray[Any], NDArray[Any]], paired: bool, num_draws: int) -> Numbers:
    rng = np.random.default_rng(0)
    num_examples = runs[0].shape[1]
    draws = np.empty(num_draws)
    for number in range(num_draws):
        examples = rng.integers(num_examples, size=(num_examples,))
        seeds = rng.integers(len(runs[0]), size=(len(runs[0]),))
        others = seeds if paired else rng.integers(len(runs[1]), size=(len(runs[1]),))
        means = [_mean_figure(metric, arm, chosen, examples) for arm, chosen in zip(runs, (seeds, others), strict=True)]
        draws[number] = means[1] - means[0]
    if not np.isfinite(draws).all():
        raise StatisticsError(
            "the metric has no value on some resampled examples; it must be defined on any examples drawn with "
            "replacement, those of one class included"
        )
    return draws


def _mean_figure(metric: Metric, arm: NDArray[Any], seeds: NDArray[np.int64], examples: NDArray[np.int64]) -> float:
    # A seed drawn twice has the same figure twice, and is computed once.
    chosen, counts = np.unique(seeds, return_counts=True)
    figures = [float(metric(arm[seed][examples])) for seed in chosen]
    return float(np.average(figures, weights=counts))
