"""Trends: whether the difference of two arms shrinks or grows with the size of the model, or with longer training.

The slope is per doubling: Σ w_i·d_i of the differences d_i at x_i = log₂ of parameters or steps, with the weights of
least squares, w_i = (x_i − x̄)/Σ(x − x̄)². All sizes count equally: a spread of three seeds is no weight.
Sizes have seeds of their own, so that Var = Σ w_i²·s_i²/n_i, with Satterthwaite's (1946) degrees of freedom. Horizons
share their seeds, so that each seed has a slope of its own, and `compare` tests these.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attnlab.errors import StatisticsError

from .clusters import merge_clusters
from .estimate import Estimate, Noise, mean_squares, satterthwaite
from .inference import Inference, Interval, infer_by_t
from .scores import Numbers, read_arms
from .skewness import Skew, few_seeds_factor, weigh_skew

MIN_SIZES = 3
"""Sizes of a trend: through two points there is always a line."""
MIN_SEEDS_AT_SIZE = 3
"""Paired seeds at each size, to know its spread."""
INCONCLUSIVE_TREND = "TREND INCONCLUSIVE"
TOO_FEW_AT_SIZE = f"TOO FEW SEEDS (n < {MIN_SEEDS_AT_SIZE})"


class TrendWords(NamedTuple):
    """The words of a difference that shrinks, grows, or stays as it is."""

    shrinking: str
    growing: str
    flat: str

    @property
    def change_words(self) -> tuple[str, ...]:
        """The words that claim a change."""
        return self[:-1]


WITH_SIZE = TrendWords("SHRINKS WITH SIZE", "GROWS WITH SIZE", "NO TREND WORTH HAVING")
WITH_STEPS = TrendWords("GAP CLOSING", "GAP OPENING", "GAP STEADY")


@dataclass(frozen=True)
class PlacedScores:
    """The scores of two paired arms at one size or horizon, as `compare` takes them; place: parameters, or steps."""

    name: str
    place: float
    baseline: Any
    variant: Any
    clusters: Sequence[Any] | None = None


@dataclass(frozen=True)
class SlopeTest:
    """The slope over sizes, and by how much skewness and few seeds widen its interval."""

    estimate: Estimate
    skew: Skew

    def at(self, level: float) -> Inference:
        """Return the interval at a level, and the p-value."""
        return infer_by_t(self.estimate, self.skew, level)


def weigh_slope(places: Sequence[float]) -> Numbers:
    """Return the weights of least squares: the slope per doubling is their sum product with the differences."""
    x = np.log2(np.asarray(places, dtype=float))
    centred = x - x.mean()
    if not centred @ centred > 0:
        raise StatisticsError(f"a trend needs places that differ, not {', '.join(f'{place:g}' for place in places)}")
    return np.asarray(centred / (centred @ centred))


def estimate_slope(sizes: Sequence[PlacedScores]) -> SlopeTest:
    """Estimate the slope of the difference over sizes that have seeds of their own."""
    weights = weigh_slope([size.place for size in sizes])
    tables, df_examples = _read_differences(sizes)
    weighted = [weight * table for weight, table in zip(weights, tables, strict=True)]
    per_seed = [table if table.ndim == 1 else table.mean(axis=1) for table in weighted]
    parts, dfs = [float(np.var(part, ddof=1)) / len(part) for part in per_seed], [len(part) - 1.0 for part in per_seed]
    method = "slope over sizes"
    if weighted[0].ndim == 2 and len({table.shape[1] for table in weighted}) == 1:
        parts, dfs = [*parts, _measure_examples(weighted)], [*dfs, df_examples or weighted[0].shape[1] - 1.0]
        method = "slope over sizes, with examples"
    df, slope = satterthwaite(parts, dfs), sum(float(part.mean()) for part in per_seed)
    estimate, fewest = Estimate(slope, math.sqrt(sum(parts)), df, method, Noise(math.nan, df)), min(map(len, per_seed))
    if not estimate.se > 0:
        return SlopeTest(estimate, Skew())
    return SlopeTest(estimate, weigh_skew(per_seed, estimate.se, fewest).widen(few_seeds_factor(fewest, True)))


def _measure_examples(weighted: Sequence[Numbers]) -> float:
    """Return the variance of the slope over examples, which all sizes share: that of their slopes, less the noise."""
    slopes = np.sum([table.mean(axis=0) for table in weighted], axis=0)
    noise = sum(mean_squares(table)[2] / table.size for table in weighted)
    return max(0.0, float(np.var(slopes, ddof=1)) / len(slopes) - noise)


def _read_differences(sizes: Sequence[PlacedScores]) -> tuple[list[Numbers], float | None]:
    """Return variant − baseline of each size, [seed] or [seed, example], and the degrees of freedom of the examples."""
    tables, df_examples = [], None
    for size in sizes:
        arms = read_arms(size.baseline, size.variant, True)
        if size.clusters is not None:
            arms = merge_clusters(arms[0], size.clusters), merge_clusters(arms[1], size.clusters)
        if arms[0].num_seeds < MIN_SEEDS_AT_SIZE:
            raise StatisticsError(
                f"{size.name} has {arms[0].num_seeds} paired seeds; a trend needs {MIN_SEEDS_AT_SIZE}"
            )
        tables.append(arms[1].values - arms[0].values)
        df_examples = arms[1].df_examples
    return tables, df_examples


def combine_places(places: Sequence[PlacedScores]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the slope of each seed of both arms, for `compare`; only of seeds with a score in both arms at each place.

    Rows of examples stay rows if all places have as many: the slope of each example.
    """
    weights = weigh_slope([one.place for one in places])
    tables = [[_as_rows(getattr(one, arm)) for one in places] for arm in ("baseline", "variant")]
    every = [table for of_arm in tables for table in of_arm]
    seeds = [seed for seed in every[0] if all(table.get(seed) is not None for table in every)]
    are_alike = len({np.shape(table[seed]) for table in every for seed in seeds}) == 1
    baseline, variant = (
        {seed: _sum_rows(weights, [table[seed] for table in of_arm], are_alike) for seed in seeds} for of_arm in tables
    )
    return baseline, variant


def _as_rows(table: Any) -> dict[str, Any]:
    entries = table.items() if isinstance(table, Mapping) else enumerate(table, start=1)
    return {str(seed): row for seed, row in entries}


def _sum_rows(weights: Numbers, rows: Sequence[Any], are_alike: bool) -> Any:
    values = rows if are_alike else [np.mean(row) for row in rows]
    return sum(weight * np.asarray(value, dtype=float) for weight, value in zip(weights, values, strict=True))


def decide_trend(
    interval: Interval, smallest: float, first: Interval, last: Interval, words: TrendWords
) -> tuple[str, str]:
    """Return the words of a trend and the reason. first, last: the difference at the smallest and the largest place.

    A difference grows if the slope is in the direction that it has at the largest place, and shrinks if against it. If
    that direction is not known there, the one at the smallest place counts: a difference that vanishes has shrunk. One
    that changed its side grows on the new side, and the reason says so.
    """
    low, high = interval
    if max(-low, high) < smallest:
        return words.flat, "the whole interval of the slope is closer to 0 than the smallest slope of interest"
    slope = _sign(interval)
    if not slope:
        return INCONCLUSIVE_TREND, "the interval of the slope contains 0 and also slopes worth having"
    direction = _sign(last) or _sign(first)
    if not direction:
        why = "the slope is not 0, but neither at the first nor at the last place is the side of the difference known"
        return INCONCLUSIVE_TREND, why
    if slope != direction:
        return words.shrinking, "the interval of the slope excludes 0, and the difference moves towards 0"
    if _sign(first) == -direction:
        why = "the difference has changed its side: the better arm at the first place is the worse one at the last"
        return words.growing, f"the interval of the slope excludes 0, and {why}"
    return words.growing, "the interval of the slope excludes 0, and the difference moves away from 0"


def _sign(interval: Interval) -> int:
    low, high = interval
    return int(low > 0) - int(high < 0)
