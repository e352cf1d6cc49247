"""Simulated arms that are made equal, whose best checkpoint is compared, or that aim at a target.

Learning curves are a + b·t^−c of the operations t, and scores have the noise of a seed, so that their difference has an
SD of 1.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from attnlab.statistics import simulation
from attnlab.statistics.cases import EFFECTS
from attnlab.statistics.draws import Rng
from attnlab.statistics.scores import Numbers
from attnlab.statistics.simulation import Ask, Case, Path
from attnlab.statistics.target import compare_with_target, exchange_steps, name_outcome, summarize_exchange

from .plan.matching import scale_steps

PART = "arms made equal, targets"
STEPS, COST = 1000, 2.0
"""Updates of the baseline, and the operations of an update of the variant in those of the baseline."""
SCALE, POWER = 100.0, 0.3
"""b and c of a curve: twice the operations are worth 2.4 SDs at the end."""
EVALUATIONS, EVALUATION_SD = (5, 20), 1.5
"""Evaluations of a run of either arm: one that is evaluated more often has more chances to be the best."""


def list_cases() -> Iterator[Case]:
    """Yield the cases that have a bound."""
    for num in (5, 10):
        finds = partial(match_curves, num=num)
        yield Case(PART, "an update costs 2 ×, equal operations", str(num), finds, effect=EFFECTS[num])
    for num in (5, 10):
        finds = partial(choose_checkpoint, num=num)
        what = "flat curves, the best of 5 and of 20 on tuning data"
        yield Case(PART, what, str(num), finds, effect=2 * EFFECTS[num])
    for num in (5, 10):
        yield Case(PART, "the mean is the target", str(num), partial(aim, num=num), effect=EFFECTS[num])
    for num in (5, 10):
        what = "steps to the same figure, equal curves"
        yield Case(PART, what, str(num), partial(exchange, num=num), effect=EFFECTS[num])


def list_unsound_matches() -> Iterator[Case]:
    """Yield what a study does not do."""
    finds = partial(match_curves, num=5, is_matched=False)
    yield Case(PART, "an update costs 2 ×, equal steps", "5", finds, bound=None)
    finds = partial(choose_checkpoint, num=10, is_tuned=False)
    yield Case(PART, "flat curves, the best of 5 and of 20 on the dev data", "10", finds, bound=None)


def match_curves(path: Path, rng: Rng, effect: float, *, num: int, is_matched: bool = True) -> bool:
    """Compare arms that are equal at equal operations; tell whether a difference was found."""
    steps = scale_steps((STEPS,), (1.0,), (COST,))[0] if is_matched else STEPS
    baseline, variant = (-SCALE * operations**-POWER + _draw_noise(rng, num) for operations in (STEPS, COST * steps))
    return simulation.is_difference(path()({"": Ask(baseline, variant + effect)})[""])


def choose_checkpoint(path: Path, rng: Rng, effect: float, *, num: int, is_tuned: bool = True) -> bool:
    """Compare the best of several evaluations of equal arms, chosen on the tuning data or on the dev data itself."""
    scores = []
    for num_evaluations, gain in zip(EVALUATIONS, (0.0, effect), strict=True):
        runs = _draw_noise(rng, num)[:, None]
        dev, tune = (runs + EVALUATION_SD * rng.standard_normal((num, num_evaluations)) for _ in range(2))
        best = (tune if is_tuned else dev).argmax(axis=1)
        scores.append(gain + dev[np.arange(num), best])
    return simulation.is_difference(path()({"": Ask(*scores)})[""])


def aim(path: Path, rng: Rng, effect: float, *, num: int) -> bool:
    """Test whether an arm reaches a target that is its true mean; an effect is how far it is beyond."""
    scores = dict(enumerate((3.2 + effect + rng.standard_normal(num)).tolist()))
    return "REACH" in name_outcome(compare_with_target(scores, 3.2, higher_is_better=True), 3.2)


def exchange(path: Path, rng: Rng, effect: float, *, num: int) -> bool:
    """Look for a change of steps between arms whose curves differ by the noise of a seed, and by an effect."""
    steps = np.linspace(STEPS / 20, STEPS, 20)
    curves = [
        [[*zip(steps.tolist(), (SCALE * steps**-POWER + shift).tolist(), strict=True)] for shift in shifts.tolist()]
        for shifts in (_draw_noise(rng, num), _draw_noise(rng, num) - effect)
    ]
    logs = [exchange_steps(*pair, higher_is_better=False) for pair in zip(*curves, strict=True)]
    low, high = summarize_exchange([log for log in logs if log is not None])[1]
    return low > 0 or high < 0


def _draw_noise(rng: Rng, num: int) -> Numbers:
    noise: Numbers = rng.standard_normal(num) / math.sqrt(2)
    return noise
