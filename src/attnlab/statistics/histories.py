"""How a simulated study is looked at: once, at declared numbers of seeds, after every seed, or as it is advised."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import draws
from .arms import compare
from .draws import Draw, Pair, Rng, Seeds
from .looks import LOOKS
from .simulation import NO_THRESHOLD, Ask, Path, is_difference
from .stability import UNKNOWN

Finds = Callable[[Path, Rng, float], bool]


def look_once(draw: Draw, seeds: Seeds, counts: Callable[[str], bool] = is_difference, **settings: Any) -> Finds:
    """Look once at one comparison."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        ask = Ask(*draw(rng, seeds, effect), {"paired": seeds.paired, **settings})
        return counts(path()({"variant": ask})["variant"])

    return finds


def look_at_cells(
    num: int, seeds: Seeds, draw: Draw = draws.draw_equal, counts: Callable[[str], bool] = is_difference,
    alone: bool = False,
) -> Finds:  # fmt: skip
    """Look once at several comparisons; with an effect, at how often the first is found."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        asks = {str(cell): Ask(*draw(rng, seeds, effect if cell == 0 else 0.0)) for cell in range(num)}
        if alone:
            return any(counts(path()({name: ask})[name]) for name, ask in asks.items())
        words = path()(asks)
        return counts(words["0"]) if effect else any(map(counts, words.values()))

    return finds


def look_as_declared(path: Path, rng: Rng, effect: float) -> bool:
    """Look at the declared numbers of seeds."""
    baseline, variant = draws.draw_equal(rng, Seeds(LOOKS[-1]), effect)
    look = path()
    return any(
        is_difference(look({"variant": Ask(baseline[:n], variant[:n], {"looks": LOOKS})})["variant"]) for n in LOOKS
    )


def look_every_seed(looks: str | None = None, draw: Draw = draws.draw_equal) -> Finds:
    """Look after every seed from the fifth to the twentieth."""
    settings = {} if looks is None else {"looks": looks}

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        baseline, variant = draw(rng, Seeds(20), effect)
        look = path()
        return any(
            is_difference(look({"variant": Ask(baseline[:n], variant[:n], settings)})["variant"]) for n in range(5, 21)
        )

    return finds


def look_as_advised(path: Path, rng: Rng, effect: float, looks: str | None = None) -> bool:
    """Take as many more seeds as INCONCLUSIVE says, three times at most and to 60 seeds."""
    baseline, variant = draws.draw_equal(rng, Seeds(60), effect)
    settings: dict[str, Any] = {"smallest": 0.5} if looks is None else {"smallest": 0.5, "looks": looks}
    look, n = path(), 5
    for _ in range(4):
        words = look({"variant": Ask(baseline[:n], variant[:n], settings)})["variant"]
        advice = re.search(r"about (\d+) more", words)
        if is_difference(words) or advice is None or n >= 60:
            return is_difference(words)
        n = min(60, n + int(advice[1]))
    return False


def draw_half(rng: Rng, seeds: Seeds, effect: float) -> Pair:
    """Draw a true difference of half of a threshold of 1."""
    # At the SD at which a t test of five seeds finds that in 7 % of cases.
    baseline, variant = seeds.draw(rng)
    return baseline, baseline + 2 * (variant - baseline) + 0.5 + effect


def average_documents(draw: Draw) -> Draw:
    """Make a draw of one number per seed, the mean over documents."""

    def averaged(rng: Rng, seeds: Seeds, effect: float) -> Pair:
        baseline, variant = draw(rng, seeds, effect)
        return baseline.mean(axis=1), variant.mean(axis=1)

    return averaged


def t_over_examples(seed_sd: float) -> Finds:
    """Test one seed over its examples."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        baseline, variant = draws.draw_one_seed(rng, 10_570, seed_sd)
        differences = variant - baseline
        return bool(abs(differences.mean()) > 1.96 * differences.std() / np.sqrt(len(differences)))

    return finds


def percentile_bootstrap(paired: bool, num_draws: int = 1000) -> Finds:
    """Take percentiles of a bootstrap over three seeds."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        arms = draws.draw_equal(rng, Seeds(3, paired), effect)
        places = rng.integers(3, size=(2, num_draws, 3))
        others = places[0] if paired else places[1]
        drawn = arms[1][others].mean(axis=1) - arms[0][places[0]].mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return bool(low > 0 or high < 0)

    return finds


def compare_stability(draw: Draw, seeds: Seeds) -> Finds:
    """Read the word on stability."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        return compare(*draw(rng, seeds, effect), seeds.paired, NO_THRESHOLD).stability != UNKNOWN

    return finds
