"""False-positive rates and power of simulated studies.

Simulated scores take the real path from scores to words. A `Path` starts a study and returns a function that takes the
comparisons at one look and returns the words of each verdict, so that a case can use another path.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from . import draws
from .arms import compare, conclude_family
from .draws import Draw, Rng, Seeds
from .looks import LOOKS
from .stability import UNKNOWN
from .verdict import BETTER, FINISHED, WORSE

NO_THRESHOLD = 1e6
"""A `smallest` that no difference reaches: then no plan is made, which would take most of the time."""


class Ask(NamedTuple):
    """One comparison of a simulated study: scores, and the settings of `compare`."""

    baseline: Any
    variant: Any
    settings: Mapping[str, Any] = MappingProxyType({})


Asks = Mapping[str, Ask]
"""All comparisons of a study at one look, by name."""
Look = Callable[[Asks], Mapping[str, str]]
"""Decides all comparisons at one look and returns the words of each verdict."""
Path = Callable[[], Look]
"""Starts a study."""
Finds = Callable[[Path, Rng, float], bool]
"""Starts a study, draws scores with an effect, and returns whether a difference was found."""


def start_study() -> Look:
    """Start a study that registers the seeds of its first verdict; later looks are undeclared and use the e-process."""
    registered: dict[str, int] = {}

    def look(asks: Asks) -> Mapping[str, str]:
        num_runs = {name: len(ask.baseline) for name, ask in asks.items()}
        is_undeclared = any(registered.setdefault(name, num) != num for name, num in num_runs.items())
        return decide_looks(asks, "open" if is_undeclared else None)

    return look


def decide_looks(asks: Asks, looks: str | None = None) -> Mapping[str, str]:
    """Decide all comparisons of one look as one family."""
    defaults: dict[str, Any] = {"smallest": NO_THRESHOLD, "looks": looks}
    alone = {name: compare(ask.baseline, ask.variant, **{**defaults, **ask.settings}) for name, ask in asks.items()}
    return {name: comparison.verdict for name, comparison in conclude_family(alone).items()}


def is_difference(words: str) -> bool:
    """Return whether a verdict is BETTER or WORSE, not only among runs that finished."""
    return words.startswith((BETTER, WORSE)) and FINISHED not in words


def is_better(words: str) -> bool:
    """Return whether a verdict is BETTER, not only among runs that finished."""
    return words.startswith(BETTER) and FINISHED not in words


@dataclass(frozen=True)
class Case:
    """A simulated study without a true difference, and how often a difference may be found in it.

    before: the rate that was measured before the rule existed, quoted. bound: the largest rate that is allowed; None if
    it is only shown. effect: the true difference for which power is shown; 0 shows none. cost: by how much the number
    of repeats is divided.
    """

    part: str
    what: str
    seeds: str
    finds: Finds
    before: str = ""
    bound: float | None = 0.06
    effect: float = 0.0
    cost: int = 1
    path: Path = start_study


@dataclass(frozen=True)
class Rate:
    """The false-positive rate of a case, and its power; None if that was not measured."""

    case: Case
    share: float
    power: float | None

    @property
    def is_kept(self) -> bool:
        """Whether the rate is within the bound; True without a bound."""
        return self.case.bound is None or self.share <= self.case.bound

    def cells(self) -> tuple[str, ...]:
        """Write the rate under COLUMNS."""
        bound = "–" if self.case.bound is None else f"{100 * self.case.bound:g}%"
        power = "–" if self.power is None else f"{self.power:.0%} at {self.case.effect:g}"
        share = f"{self.share:.1%}{'' if self.is_kept else '  TOO OFTEN'}"
        return self.case.what, self.case.seeds, self.case.before or "–", share, bound, power


COLUMNS = ("no true difference", "seeds", "before", "now", "at most", "power at an effect of")


def measure(case: Case, num_repeats: int, *, with_power: bool = True) -> Rate:
    """Simulate a case this many times; power has a quarter of the repeats."""
    rng = np.random.default_rng([*case.part.encode(), *case.what.encode(), *case.seeds.encode()])
    repeats = max(1, num_repeats // case.cost)
    share = sum(case.finds(case.path, rng, 0.0) for _ in range(repeats)) / repeats
    if not with_power or not case.effect:
        return Rate(case, share, None)
    repeats = max(1, repeats // 4)
    return Rate(case, share, sum(case.finds(case.path, rng, case.effect) for _ in range(repeats)) / repeats)


def look_once(draw: Draw, seeds: Seeds, counts: Callable[[str], bool] = is_difference, **settings: Any) -> Finds:
    """Look once at one comparison."""
    return look_at_cells(1, seeds, draw, counts, paired=seeds.paired, **settings)


def look_at_cells(
    num: int, seeds: Seeds, draw: Draw = draws.draw_equal, counts: Callable[[str], bool] = is_difference,
    alone: bool = False, **settings: Any,
) -> Finds:  # fmt: skip
    """Look once at several comparisons; only the first one has the effect, and its power is measured."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        asks = {str(cell): Ask(*draw(rng, seeds, 0.0 if cell else effect), settings) for cell in range(num)}
        if alone:
            return any(counts(path()({name: ask})[name]) for name, ask in asks.items())
        words = path()(asks)
        return counts(words["0"]) if effect else any(map(counts, words.values()))

    return finds


def look_repeatedly(nums: Iterable[int], draw: Draw = draws.draw_equal, **settings: Any) -> Finds:
    """Look after each of these numbers of seeds, at most 20."""

    def finds(path: Path, rng: Rng, effect: float) -> bool:
        baseline, variant = draw(rng, Seeds(20), effect)
        look = path()
        asks = (Ask(baseline[:n], variant[:n], settings) for n in nums)
        return any(is_difference(look({"variant": ask})["variant"]) for ask in asks)

    return finds


look_as_declared = look_repeatedly(LOOKS, looks=LOOKS)


def look_as_advised(path: Path, rng: Rng, effect: float, **settings: Any) -> bool:
    """Add as many seeds as INCONCLUSIVE says, up to three times and to 60 seeds."""
    baseline, variant = draws.draw_equal(rng, Seeds(60), effect)
    look, n = path(), 5
    for _ in range(4):
        words = look({"variant": Ask(baseline[:n], variant[:n], {"smallest": 0.5, **settings})})["variant"]
        advice = re.search(r"about (\d+) more", words)
        if is_difference(words) or advice is None or n >= 60:
            return is_difference(words)
        n = min(60, n + int(advice[1]))
    return False


def t_over_examples(path: Path, rng: Rng, effect: float, *, seed_sd: float) -> bool:
    """Test one seed over its examples, with scores like F1 in percent: seeds shift the mean, examples have SD 40."""
    shift = seed_sd * rng.standard_normal((2, 1))
    baseline, variant = shift + 40.0 / math.sqrt(2) * rng.standard_normal((2, 10_570))
    differences = variant - baseline
    return bool(abs(differences.mean()) > 1.96 * differences.std() / np.sqrt(len(differences)))


def percentile_bootstrap(path: Path, rng: Rng, effect: float, *, paired: bool, num_draws: int = 1000) -> bool:
    """Use percentiles of a bootstrap over three seeds."""
    arms = draws.draw_equal(rng, Seeds(3, paired), effect)
    places = rng.integers(3, size=(2, num_draws, 3))
    others = places[0] if paired else places[1]
    means = arms[1][others].mean(axis=1) - arms[0][places[0]].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return bool(low > 0 or high < 0)


def find_without_exaggeration_note(path: Path, rng: Rng, effect: float) -> bool:
    """Compare five seeds with low power; return whether a difference was found without the note on exaggeration."""
    comparison = compare(*draws.draw_half(rng, Seeds(5), effect), smallest=1.0)
    return comparison.decision.is_difference and not comparison.notes_by_kind["power"]


def compare_stability(path: Path, rng: Rng, effect: float, *, draw: Draw, seeds: Seeds) -> bool:
    """Look for LESS or MORE STABLE; an effect is the ratio of the arms' SDs."""
    baseline, variant = draw(rng, seeds, 0.0)
    return compare(baseline, variant * (effect or 1.0), seeds.paired, NO_THRESHOLD).stability != UNKNOWN
