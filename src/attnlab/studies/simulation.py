"""Simulated studies: random instead of trained scores pass through search, plan, ledger, registration, verdicts."""

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from attnlab.statistics import draws, simulation
from attnlab.statistics.cases import EFFECTS, EVERY_SEED
from attnlab.statistics.draws import Seeds
from attnlab.statistics.simulation import NO_THRESHOLD, Ask, Asks, Case, Look

from . import copies_simulation, fairness_simulation
from .answers.analysis import conclude
from .file.design import SearchSettings
from .ledger.database import Delivery, Ledger
from .plan.planning import PlannedRun
from .plan.search import ArmSearch, Trial
from .run.execution import make_row
from .study import Study

BASELINE, VARIANT = "baseline", "variant"
PAIRING = {"weights": {}, "batches": "same", "evaluation": "same"}
PART = "through a ledger"
SEARCHED = "every arm at its own rate"


def list_cases() -> Iterator[Case]:
    """Yield a case for each part of a study that decides: families, looks, registration, failures, clusters."""
    finds, what = simulation.look_at_cells(4, Seeds(5)), "2 phases × 2 sizes of a baseline against itself: any"
    yield Case(PART, what, "5", finds, "19 %", effect=2 * EFFECTS[5], cost=5, path=start)
    finds, effect = simulation.look_as_declared, EFFECTS[20]
    yield Case(PART, "declared looks", "5, 10, 15, 20", finds, "5.0 %", effect=effect, cost=10, path=start)
    finds, what = simulation.look_repeatedly(EVERY_SEED), "registered with 5, then after every seed"
    yield Case(PART, what, "5 to 20", finds, "18.5 %", effect=effect, cost=20, path=start)
    finds = simulation.look_at_cells(5, Seeds(10), partial(draws.draw_diverging, share=0.3), simulation.is_better)
    what = "the worst 30% diverge in each of 5 phases: any plain BETTER"
    yield Case(PART, what, "10", finds, "10–12.5 %", effect=2 * EFFECTS[10], cost=20, path=start)
    counts = np.full(20, 25)
    names = [str(name) for name in np.repeat(np.arange(20), counts)]
    finds = simulation.look_once(partial(draws.draw_clusters, sizes=counts), Seeds(5), clusters=names)
    yield Case(PART, "20 articles of 25 questions", "5", finds, "12–52 %", 0.08, 0.8, cost=5, path=start)
    yield from list_search_cases()
    yield from fairness_simulation.list_cases()
    yield from copies_simulation.list_cases()


def list_search_cases() -> Iterator[Case]:
    """Yield searches over learning rates, of arms that have the same best score at different rates."""
    for num in (5, 10):
        effect = 2 * EFFECTS[num]
        what = "tuned for every seed, 4 trials"
        yield Case(
            SEARCHED, what, str(num), partial(tune, num=num), "4.9–5.1 %", effect=effect, path=simulation.start_study
        )
    finds = partial(tune, num=5, is_shifted=True)
    yield Case(
        SEARCHED, "tuned for every seed, grids apart", "5", finds, effect=2 * EFFECTS[5], path=simulation.start_study
    )
    finds = partial(tune, num=5, halve=True)
    yield Case(
        SEARCHED, "tuned for every seed by halving", "5", finds, effect=2 * EFFECTS[5], path=simulation.start_study
    )
    cost = count_steps(HALVED, WIDE_GRID) / count_steps(WHOLE, WIDE_GRID)
    yield Case(SEARCHED, f"halving 9 rates, another choice than with all, at {cost:.0%} of the steps", "1", miss_rate)


def list_unsound_searches() -> Iterator[Case]:
    """Yield ways to choose a rate that give wrong verdicts."""
    finds = partial(tune, num=5, repeat="none")
    yield Case(SEARCHED, "one rate for both arms", "5", finds, "7–51 %", None)
    finds = partial(tune, num=5, repeat="once")
    yield Case(SEARCHED, "tuned once for all seeds, 4 trials", "5", finds, "7–27 %", None)
    yield from fairness_simulation.list_unsound_matches()


RATES = (-1.5, -0.5, 0.5, 1.5)
"""Logarithms of the learning rates of a grid."""
BEST = 0.5
"""The best rate of the variant, and with the other sign the baseline's."""


def tune(
    path: simulation.Path, rng: draws.Rng, effect: float, *, num: int, repeat: str = "seed", is_shifted: bool = False,
    halve: bool = False,
) -> bool:  # fmt: skip
    """Choose a rate by trials for each arm, then compare runs at it; tell whether a difference was found.

    A score is −(rate − best)² plus noise whose SD is that of a seed. is_shifted: each arm has a grid around its best.
    """
    search = SearchSettings(over={"rate": list(RATES)}, halve=halve)
    scores: dict[str, list[float]] = {}
    for arm, best, gain in ((BASELINE, -BEST, 0.0), (VARIANT, BEST, effect)):
        grid = [rate + (best if is_shifted else 0.0) for rate in RATES]
        rates = [float(grid[1])] * num
        if repeat == "once":
            rates = [_choose_rate(search, grid, best, rng)] * num
        elif repeat == "seed":
            rates = [_choose_rate(search, grid, best, rng) for _ in range(num)]
        scores[arm] = [gain - (rate - best) ** 2 + rng.standard_normal() / math.sqrt(2) for rate in rates]
    return simulation.is_difference(path()({"": Ask(scores[BASELINE], scores[VARIANT])})[""])


WIDE_GRID = [float(rate) for rate in range(9)]
WHOLE, HALVED = (SearchSettings(over={"rate": WIDE_GRID}, halve=halve) for halve in (False, True))
NOISE = 0.2
"""The SD of a whole trial in `miss_rate`, if the rates next to the best score 1 less."""


def miss_rate(path: simulation.Path, rng: draws.Rng, effect: float) -> bool:
    """Tell whether halving chooses another rate than a whole grid; noise goes with one by the root of the steps."""
    best = float(rng.choice(WIDE_GRID))
    whole, halved = (
        _choose_rate(search, WIDE_GRID, best, rng, lambda share: NOISE / math.sqrt(share)) for search in (WHOLE, HALVED)
    )
    return whole != halved


def count_steps(search: SearchSettings, grid: Sequence[float]) -> float:
    """Return the steps of the trials for one run of one arm, in lengths of that run."""
    trials, _ = ArmSearch({"rate": list(grid)}, search, None, lambda trial: []).list_trials(None)
    return float(sum(trial.share for trial in trials))


def _choose_rate(
    search: SearchSettings, grid: Sequence[float], best: float, rng: draws.Rng,
    find_sd: Callable[[Fraction], float] = lambda share: 1 / math.sqrt(2),
) -> float:  # fmt: skip
    """Choose a rate as a study does, with simulated trials. find_sd: the noise of a trial by its share of the steps."""
    results: dict[str, float] = {}

    def find_runs(trial: Trial) -> list[SimpleNamespace]:
        rate = float(trial.values["rate"])
        id = f"{rate} {trial.share}"
        results.setdefault(id, -((rate - best) ** 2) + rng.standard_normal() * find_sd(trial.share))
        return [SimpleNamespace(id=id)]

    arm = ArmSearch({"rate": list(grid)}, search, None, find_runs)
    chosen = arm.list_trials(results)[1]
    assert chosen, "every trial has a score"
    return float(chosen["rate"])


def start() -> Look:
    """Start a study with an empty ledger in a temporary folder."""
    place = Path(tempfile.mkdtemp())

    def look(asks: Asks) -> Mapping[str, str]:
        study, cells = _make_study(asks)
        planned = study.plan()
        with closing(Ledger(place / "ledger.sqlite")) as ledger:
            ledger.add_runs([make_row(run) for run in planned])
            known = ledger.results()
            for run in planned:
                if run.id not in known:
                    ledger.deliver(_make_delivery(run, asks[cells[run.phase, run.size]], ledger))
            answers = conclude(study.design, planned, ledger, {}).single
        return {cells[answer.phase, answer.size]: answer.verdict for answer in answers}

    weakref.finalize(look, shutil.rmtree, place)
    return look


def _make_study(asks: Asks) -> tuple[Study, dict[tuple[str, str], str]]:
    """Return a study with a phase and size for every comparison, and the comparison of each."""
    first = next(iter(asks.values()))
    sizes = ("small", "large") if len(asks) % 2 == 0 else ("small",)
    looks, smallest = first.settings.get("looks") or (), float(first.settings.get("smallest", NO_THRESHOLD))
    looks = looks if isinstance(looks, str) else tuple(looks)
    design = _make_design(len(asks) // len(sizes), sizes, len(first.baseline), looks, smallest)
    places = [(phase.name, size) for phase in design.design.phases for size in sizes]
    return design, dict(zip(places, asks, strict=True))


@cache
def _make_design(
    num_phases: int, sizes: tuple[str, ...], num_seeds: int, looks: str | tuple[int, ...], smallest: float
) -> Study:  # fmt: skip
    source = "embedded:copy?vocab=8&length=9&examples=8"
    phase = {"task": "copy", "task_settings": {"vocab": 8, "length": 9}, "data": "copy", "smallest": smallest}
    plain: dict[str, Any] = {
        "name": "simulated", "baseline": BASELINE, "seeds": list(range(1, num_seeds + 1)),
        "looks": looks if isinstance(looks, str) else list(looks) or None,
        "arms": {BASELINE: "dot | softmax", VARIANT: "cosine | softmax"},
        "sizes": {name: {"architecture": "gpt2", "config": {"n_layer": 1 + at}} for at, name in enumerate(sizes)},
        "data": {"copy": {"train": source, "dev": source}},
        "phases": [{**phase, "name": f"phase-{at}", "segments": [{"steps": 1 + at}]} for at in range(num_phases)],
    }  # fmt: skip
    return Study.of(plain)


def _make_delivery(run: PlannedRun, ask: Ask, ledger: Ledger) -> Delivery:
    """Return the outputs of a run with a simulated score; a score that is not finite is a diverged run."""
    score = np.asarray((ask.baseline if run.arm == BASELINE else ask.variant)[run.seed - 1], dtype=float)
    value = float(score.mean())
    is_finished = bool(np.isfinite(value))
    last = {"step": 1, "primary": "accuracy", "figures": {"accuracy": value}, "note": ""} if is_finished else None
    status = "finished" if is_finished else "diverged"
    rows = {"accuracy": score.tolist()} if score.ndim and is_finished else {}
    ids = [str(number) for number in range(score.size)] if rows else []
    return Delivery(
        run.id, ledger.begin(run.id, "simulated"), status, {"status": status, "step": 1, "num_steps": 1, "last": last},
        [], PAIRING, ids, rows, ask.settings.get("clusters") if rows else None,
    )  # fmt: skip
