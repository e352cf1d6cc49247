"""How often arms that do not differ are said to differ, and how often a true difference is found.

Simulated scores go through the real path from scores to words. The path can be replaced: `Path` starts a study and
returns a function that takes what is compared at one look and returns the words of each verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arms import compare
from .draws import Rng
from .families import conclude_family
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


def start_forgetful() -> Look:
    """Start a study that decides at every look as if it were the only one, which attnlab does not do."""
    return decide_looks


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
