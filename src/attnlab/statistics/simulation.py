"""How often arms that do not differ are said to differ, and how often a true difference is found.

Simulated scores go through the real path from scores to words. The path can be replaced: `Path` starts a study and
returns a function that takes what is compared at one look and returns the words of each verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import draws
from .arms import compare, conclude_family
from .draws import Draw, Pair, Rng, Seeds
from .looks import LOOKS
from .stability import UNKNOWN
from .verdict import BETTER, FINISHED, WORSE

NO_THRESHOLD = 1e6
"""A `smallest` that no difference reaches: then no plan is made, which would take most of the time."""


@dataclass(frozen=True)
class Ask:
    """One comparison of a simulated study: scores, and the settings of `compare`."""

    baseline: Any
    variant: Any
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_runs(self) -> int:
        """Runs per arm so far."""
        return len(self.baseline)


Asks = Mapping[str, Ask]
"""All comparisons of a study at one look, by name."""
Look = Callable[[Asks], Mapping[str, str]]
"""Takes a look at a study and returns the words of each verdict."""
Path = Callable[[], Look]
"""Starts a study."""


def start_study() -> Look:
    """Start a study as the statistics decide one: the first verdict registers its seeds, later ones are looks.

    A look that was not declared is judged by the e-process, as docs/statistics.md says of UNDECLARED LOOK.
    """
    registered: dict[str, int] = {}

    def look(asks: Asks) -> Mapping[str, str]:
        is_undeclared = any(registered.setdefault(name, ask.num_runs) != ask.num_runs for name, ask in asks.items())
        return decide_looks(asks, "open" if is_undeclared else None)

    return look


def decide_looks(asks: Asks, looks: str | None = None) -> Mapping[str, str]:
    """Decide all comparisons of one look as one family."""
    defaults: dict[str, Any] = {"smallest": NO_THRESHOLD, "looks": looks}
    found = {name: compare(ask.baseline, ask.variant, **{**defaults, **ask.settings}) for name, ask in asks.items()}
    return {name: comparison.verdict for name, comparison in conclude_family(found).items()}


def is_difference(words: str) -> bool:
    """Tell whether a verdict says that the arms differ, without any reserve about runs that failed."""
    return words.startswith((BETTER, WORSE)) and FINISHED not in words


def is_better(words: str) -> bool:
    """Tell whether a verdict says BETTER without any reserve about runs that failed."""
    return words.startswith(BETTER) and FINISHED not in words


@dataclass(frozen=True)
class Case:
    """A simulated study, and how often a difference may be found in it if there is none.

    finds: starts a study, draws with an effect, and tells whether a difference was found. before: the rate that was
    measured before, quoted. bound: the largest rate that is allowed; None if it is only shown. effect: the true
    difference that power is shown for; 0 shows none. cost: how many times fewer repeats are made.
    """

    part: str
    what: str
    seeds: str
    finds: Callable[[Path, Rng, float], bool]
    before: str = ""
    bound: float | None = 0.06
    effect: float = 0.0
    cost: int = 1
    path: Path | None = None
    """Of its own, in place of the one that all are tried with."""


@dataclass(frozen=True)
class Rate:
    """How often a case found a difference where there is none, and where there is one; None if that was not tried."""

    case: Case
    share: float
    power: float | None

    @property
    def is_kept(self) -> bool:
        """Whether the bound is kept; true if there is none."""
        return self.case.bound is None or self.share <= self.case.bound

    def cells(self) -> tuple[str, ...]:
        """Write the rate under COLUMNS."""
        bound = "–" if self.case.bound is None else f"{100 * self.case.bound:g}%"
        power = "–" if self.power is None else f"{self.power:.0%} at {self.case.effect:g}"
        found = f"{self.share:.1%}{'' if self.is_kept else '  TOO OFTEN'}"
        return self.case.what, self.case.seeds, self.case.before or "–", found, bound, power


COLUMNS = ("no true difference", "seeds", "before", "now", "at most", "power at an effect of")


def measure(case: Case, num_repeats: int, path: Path = start_study, *, with_power: bool = True) -> Rate:
    """Draw a case so many times and count; a quarter as often for power."""
    rng = np.random.default_rng([*case.part.encode(), *case.what.encode(), *case.seeds.encode()])
    own, repeats = case.path or path, max(1, num_repeats // case.cost)
    share = sum(case.finds(own, rng, 0.0) for _ in range(repeats)) / repeats
    if not with_power or not case.effect:
        return Rate(case, share, None)
    repeats = max(1, repeats // 4)
    return Rate(case, share, sum(case.finds(own, rng, case.effect) for _ in range(repeats)) / repeats)


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
