"""How often nothing looks like something: null data through the real verdict, and through what attnlab does not do.

`python -m attnlab.statistics` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from . import nothing
from .arms import compare
from .comparison import Comparison
from .families import compare_many
from .looks import LOOKS
from .nothing import Pair, Rng, Seeds
from .stability import UNKNOWN
from .verdict import BETTER, WORSE

Draw = Callable[[Rng, Seeds], Pair]
STRICT, LOOSE = 0.07, 0.10
"""The most false positives where arms are normal, and where seeds fail."""


@dataclass(frozen=True)
class Case:
    """One way to look at arms that do not differ: draws them, and tells whether a difference was found.

    bound: how often that may happen; None where it only is to be seen.
    """

    what: str
    how: str
    seeds: str
    finds: Callable[[Rng], bool]
    bound: float | None = None


@dataclass(frozen=True)
class Rate:
    """How often a case found a difference."""

    case: Case
    share: float
    num_repeats: int

    @property
    def is_kept(self) -> bool:
        """Whether the bound is kept; true where there is none."""
        return self.case.bound is None or self.share <= self.case.bound

    def cells(self) -> tuple[str, ...]:
        """Write the rate under COLUMNS."""
        bound = "–" if self.case.bound is None else f"{self.case.bound:.0%}"
        return self.case.what, self.case.how, self.case.seeds, f"{self.share:.1%}", bound, "" if self.is_kept else "NO"


COLUMNS = ("arms that do not differ", "analysis", "seeds", "found a difference", "at most", "")


def measure(case: Case, num_repeats: int, seed: int = 0) -> Rate:
    """Draw a case so many times and count."""
    rng = np.random.default_rng([seed, *case.what.encode(), *case.how.encode(), *case.seeds.encode()])
    found = sum(case.finds(rng) for _ in range(num_repeats))
    return Rate(case, found / num_repeats, num_repeats)


def verdicts() -> Iterator[Case]:
    """Yield the cases that go through the verdict, each with its bound."""
    drawn: list[tuple[str, Draw, float]] = [
        ("equal SD", nothing.equal, STRICT),
        ("variant's SD 10 ×", nothing.wider, STRICT),
        ("a fifth of the seeds fails in both arms", nothing.failing, LOOSE),
        ("half of the variant's seeds fail, equal means", nothing.failing_variant, LOOSE),
    ]
    for what, draw, bound in drawn:
        for paired in (True, False):
            for n in (5, 10):
                yield Case(what, "paired" if paired else "unpaired", str(n), _by_verdict(draw, n, paired), bound)
    for paired in (True, False):
        how = f"[seed, example], {'paired' if paired else 'unpaired'}"
        yield Case("200 examples", how, "5", _by_verdict(nothing.examples, 5, paired), STRICT)
    yield Case("equal SD, three variants", "paired, Holm", "10", _in_a_family, STRICT)
    yield Case("equal SD", "declared looks", "5, 10, 15, 20", _at_looks, STRICT)
    yield Case("equal SD", "open-ended, after every seed", "5 to 20", _after_every_seed, STRICT)


def stabilities() -> Iterator[Case]:
    """Yield the cases that go through the word on stability."""
    for what, draw, bound in (
        ("equal SD", nothing.equal, STRICT),
        ("a fifth of the seeds fails in both arms", nothing.failing, LOOSE),
    ):
        for paired in (True, False):
            how = f"stability, {'paired' if paired else 'unpaired'}"
            yield Case(what, how, "10", _by_stability(draw, 10, paired), bound)


def refused() -> Iterator[Case]:
    """Yield what attnlab does not do, and why; and what no analysis of few seeds can guard against."""
    yield Case("equal SD", "percentile bootstrap, paired", "3", _by_percentiles(paired=True))
    yield Case("equal SD", "percentile bootstrap, unpaired", "3", _by_percentiles(paired=False))
    yield Case("10,570 examples, seed SD 2", "t over examples alone", "1", _by_examples(2.0))
    yield Case("10,570 examples, seed SD 3", "t over examples alone", "1", _by_examples(3.0))
    yield Case("equal SD", "paired t after every seed", "3 to 20", _peeking)
    rare = nothing.rarely_failing_variant
    for n in (5, 20):
        what = "a fifth of the variant's seeds fails, equal means"
        yield Case(what, "paired (a limit of few seeds)", str(n), _by_verdict(rare, n, True))


def is_difference(comparison: Comparison) -> bool:
    """Tell whether a verdict says that the arms differ, below the threshold or not."""
    return comparison.verdict.startswith((BETTER, WORSE))


def _by_verdict(draw: Draw, num_seeds: int, paired: bool) -> Callable[[Rng], bool]:
    return lambda rng: is_difference(compare(*draw(rng, Seeds(num_seeds, paired)), paired))


def _by_stability(draw: Draw, num_seeds: int, paired: bool) -> Callable[[Rng], bool]:
    return lambda rng: compare(*draw(rng, Seeds(num_seeds, paired)), paired).stability != UNKNOWN


def _in_a_family(rng: Rng) -> bool:
    baseline = rng.standard_normal(10)
    variants: dict[str, Any] = {name: 0.5 * baseline + rng.standard_normal(10) for name in "abc"}
    return any(is_difference(found) for found in compare_many(baseline, variants).comparisons.values())


def _at_looks(rng: Rng) -> bool:
    baseline, variant = nothing.equal(rng, Seeds(LOOKS[-1]))
    return any(is_difference(compare(baseline[:n], variant[:n], looks=LOOKS)) for n in LOOKS)


def _after_every_seed(rng: Rng) -> bool:
    baseline, variant = nothing.equal(rng, Seeds(20))
    return any(is_difference(compare(baseline[:n], variant[:n], looks="open")) for n in range(5, 21))


def _by_percentiles(paired: bool, num_draws: int = 1000) -> Callable[[Rng], bool]:
    def finds(rng: Rng) -> bool:
        arms = nothing.equal(rng, Seeds(3, paired))
        places = rng.integers(3, size=(2, num_draws, 3))
        others = places[0] if paired else places[1]
        draws = arms[1][others].mean(axis=1) - arms[0][places[0]].mean(axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        return bool(low > 0 or high < 0)

    return finds


def _by_examples(seed_sd: float) -> Callable[[Rng], bool]:
    def finds(rng: Rng) -> bool:
        baseline, variant = nothing.one_seed(rng, 10_570, seed_sd)
        return bool(stats.ttest_rel(baseline, variant).pvalue < 0.05)

    return finds


def _peeking(rng: Rng) -> bool:
    differences = rng.standard_normal(20)
    n = np.arange(3, 21)
    sums, squares = np.cumsum(differences)[2:], np.cumsum(differences**2)[2:]
    t = sums / n / np.sqrt((squares - sums**2 / n) / (n - 1) / n)
    return bool((np.abs(t) > stats.t.isf(0.025, n - 1)).any())
