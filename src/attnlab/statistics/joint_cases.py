"""Simulated trends over sizes and horizons, and answers over tasks, for `python -m attnlab.statistics`."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.stats import linregress

from .arms import compare
from .draws import Rng
from .families import adjust
from .overall import OVERALL, compare_overall, decide_overall
from .scores import Numbers
from .simulation import Case, Path
from .trend import WITH_SIZE, WITH_STEPS, PlacedScores, TrendWords, combine_places, decide_trend, estimate_slope

TREND, HORIZONS, CONCLUSION = "trend", "horizons", "conclusion"
GAP = 10.0
"""A difference that all sizes or horizons have, in SDs of a seed's difference: its side is known at either end."""
NO_SLOPE = 1e-9
"""A smallest slope that every slope reaches."""
KNOWN = (1.0, 1.0)
"""An interval of a difference whose side is known."""
SPREADS = {"equal SD": 1.0, "SD doubles with every size": 2.0, "SD halves with every size": 0.5}
SEEDS = ((5, 3, 3), (5, 5, 5), (10, 10, 10))
SLOPES = {3: 1.5, 5: 1.2, 10: 0.7}
"""True slopes per doubling by the fewest seeds of a size, in SDs of a seed's difference at the smallest."""


def list_joint_cases() -> Iterator[Case]:
    """Yield trends over three sizes, trends over three horizons, and answers over tasks."""
    for what, factor in SPREADS.items():
        for seeds in SEEDS:
            finds = partial(find_trend, seeds=seeds, factor=factor)
            yield Case(TREND, f"slope over 3 sizes, {what}", _show(seeds), finds, effect=SLOPES[min(seeds)])
    finds = partial(find_trend, seeds=(5, 5, 5), factor=1.0, num_examples=200)
    yield Case(TREND, "slope over 3 sizes, 200 examples", "5, 5, 5", finds, effect=SLOPES[5])
    finds = partial(find_trend, seeds=(5, 5, 5), factor=1.0, num_arms=3)
    yield Case(TREND, "slopes of 3 arms over 3 sizes: any", "5, 5, 5", finds, effect=2 * SLOPES[5])
    for correlation in (0.0, 0.8):
        for num in (5, 10):
            finds, what = partial(find_gap, num=num, correlation=correlation), f"AR(1) curves, ρ = {correlation:g}"
            yield Case(HORIZONS, f"slope over 3 horizons, {what}", str(num), finds, effect=SLOPES[num])
    for num_tasks, num in ((3, 5), (3, 10), (4, 5), (4, 10)):
        finds = partial(find_overall, num_tasks=num_tasks, num=num)
        yield Case(
            CONCLUSION, f"{num_tasks} tasks, ρ = ½ between them", str(num), finds, effect=1.7 if num == 5 else 1.0
        )
    finds = partial(find_overall, num_tasks=4, num=5, num_examples=100)
    yield Case(CONCLUSION, "4 tasks of 100 examples each", "5", finds, effect=3.4)
    finds = partial(find_overall, num_tasks=4, num=10, opposed=3.0)
    yield Case(CONCLUSION, "4 tasks, 2 better and 2 worse by as much", "10", finds, effect=1.0)


def list_unsound_joint_methods() -> Iterator[Case]:
    """Yield simpler analyses of the same scores."""
    finds = partial(regress_runs, seeds=(5, 3, 3), factor=2.0)
    yield Case(TREND, "one regression over all runs, SD doubles with every size", "5, 3, 3", finds, bound=None)
    finds = partial(average_over_examples, num_tasks=4, num=5, num_examples=100)
    yield Case(CONCLUSION, "4 tasks of 100 examples each, averaged away", "5", finds, bound=None)


def _show(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def draw_sizes(
    rng: Rng, seeds: Sequence[int], factor: float, slope: float, num_examples: int | None = None
) -> list[PlacedScores]:
    """Draw sizes that double; differences have an SD that changes by a factor with every size."""
    by_example = rng.standard_normal((2, num_examples)) if num_examples is not None else np.zeros((2, 1))
    sizes = []
    for at, num in enumerate(seeds):
        shape = (num,) if num_examples is None else (num, 1)
        differences = GAP + slope * at + factor**at * rng.standard_normal(shape)
        if num_examples is not None:
            # Examples favour either arm, and the more so the larger the model is, or the less.
            differences = differences + by_example[0] + at * by_example[1] + rng.standard_normal((num, num_examples))
        baseline = rng.standard_normal(differences.shape)
        sizes.append(PlacedScores(f"size {at}", 2.0 ** (20 + at), baseline, baseline + differences))
    return sizes


def find_trend(
    path: Path, rng: Rng, effect: float, *, seeds: Sequence[int], factor: float, num_examples: int | None = None,
    num_arms: int = 1,
) -> bool:  # fmt: skip
    """Tell whether a trend over sizes is found in any arm; with an effect, in the first, which alone has it."""
    slopes = [0.0 if arm else effect for arm in range(num_arms)]
    tests = {
        arm: estimate_slope(draw_sizes(rng, seeds, factor, slope, num_examples)) for arm, slope in enumerate(slopes)
    }
    levels = adjust({arm: test.at(0.05).p for arm, test in tests.items()})
    found = [is_trend(test.at(levels[arm].level).interval, WITH_SIZE) for arm, test in tests.items()]
    return found[0] if effect else any(found)


def is_trend(interval: tuple[float, float], words: TrendWords) -> bool:
    """Tell whether the words of a trend say that the difference shrinks or grows."""
    return decide_trend(interval, NO_SLOPE, KNOWN, KNOWN, words)[0] in words.change_words


def draw_curves(rng: Rng, num: int, correlation: float, slope: float) -> list[PlacedScores]:
    """Draw runs of 1000, 2000 and 4000 steps, whose noise is correlated over the horizons of a seed (AR(1))."""
    steps, noise = (1000, 2000, 4000), rng.standard_normal((3, 2, num))
    for at in (1, 2):
        noise[at] = correlation * noise[at - 1] + math.sqrt(1 - correlation**2) * noise[at]
    horizons = []
    for at, step in enumerate(steps):
        mean = 100 - 300 * step**-0.4
        baseline, variant = mean + noise[at] / math.sqrt(2)
        horizons.append(PlacedScores(f"{step} steps", step, baseline, variant + GAP + slope * at))
    return horizons


def find_gap(path: Path, rng: Rng, effect: float, *, num: int, correlation: float) -> bool:
    """Tell whether the gap of two arms closes or opens over horizons."""
    found = compare(*combine_places(draw_curves(rng, num, correlation, effect)), smallest=NO_SLOPE)
    return is_trend(found.inference.interval, WITH_STEPS)


def draw_tasks(
    rng: Rng, num_tasks: int, num: int, num_examples: int | None, effect: float, opposed: float
) -> list[tuple[Numbers, Numbers]]:
    """Draw tasks whose differences are correlated over seeds; opposed: added to task k k times, with changing sign."""
    shared, tasks = rng.standard_normal(num) / math.sqrt(2), []
    for at in range(num_tasks):
        differences = shared + rng.standard_normal(num) / math.sqrt(2) + effect + opposed * (1 + at) * (-1) ** at
        if num_examples is not None:
            by_example = 15 * rng.standard_normal(num_examples)
            differences = differences[:, None] + by_example + rng.standard_normal((num, num_examples))
        baseline = rng.standard_normal(differences.shape)
        tasks.append((baseline, baseline + differences))
    return tasks


def find_overall(
    path: Path, rng: Rng, effect: float, *, num_tasks: int, num: int, num_examples: int | None = None,
    opposed: float = 0.0,
) -> bool:  # fmt: skip
    """Tell whether the variant is found better or worse over all tasks."""
    drawn = draw_tasks(rng, num_tasks, num, num_examples, effect, opposed)
    tasks = {str(at): compare(*pair, smallest=1.0 + at) for at, pair in enumerate(drawn)}
    return OVERALL in decide_overall(compare_overall(tasks), [])[0]


def average_over_examples(
    path: Path, rng: Rng, effect: float, *, num_tasks: int, num: int, num_examples: int
) -> bool:  # fmt: skip
    """Compare over tasks by the mean of each seed, as if other examples would give the same."""
    drawn = draw_tasks(rng, num_tasks, num, num_examples, effect, 0.0)
    tasks = {
        str(at): compare(baseline.mean(axis=1), variant.mean(axis=1), smallest=1.0)
        for at, (baseline, variant) in enumerate(drawn)
    }
    return compare_overall(tasks).decision.is_difference


def regress_runs(path: Path, rng: Rng, effect: float, *, seeds: Sequence[int], factor: float) -> bool:
    """Fit one line through the differences of all runs, as if their spread were the same at every size."""
    sizes = draw_sizes(rng, seeds, factor, effect)
    x = np.concatenate([np.full(len(size.baseline), np.log2(size.place)) for size in sizes])
    y = np.concatenate([size.variant - size.baseline for size in sizes])
    return bool(linregress(x, y).pvalue <= 0.05)
