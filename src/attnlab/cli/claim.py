"""Seeds for a difference and an SD that are given as numbers, as a paper claims them, without a study."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_below, print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.statistics.estimate import Noise

CORRELATIONS = (0.0, 0.5, 0.8)
"""Of the scores of two arms with the same seed."""
MIN_NUMBER, MAX_NUMBER = 1e-100, 1e100
"""Squares of numbers outside cannot be computed."""


def plan_claim(
    difference: float, sd: str | None, spread: float | None, powers: Sequence[float], alpha: float, as_json: bool
) -> None:
    """Print how many seeds per arm detect a difference of two arms whose scores have these SDs over seeds.

    spread: in place of sd, the SD of the paired difference of one seed.
    """
    from attnlab.statistics.estimate import Noise
    from attnlab.statistics.formatting import show, show_count
    from attnlab.statistics.planning import seeds_needed
    from attnlab.statistics.verdict import MIN_SEEDS

    if not MIN_NUMBER <= difference <= MAX_NUMBER:
        raise RequestError(f"--difference takes a number above 0, in units of the score; it has {difference:g}")
    sds = (spread or 0.0,) if sd is None else _read_sds(sd)
    designs = {"paired": Noise(sds[0] ** 2, math.inf)} if sd is None else _list_designs(difference, *sds)
    needed = {
        name: {power: seeds_needed(noise, difference, power, alpha) for power in powers}
        for name, noise in designs.items()
    }
    if as_json:
        shown = {name: {f"{power:g}": seeds for power, seeds in row.items()} for name, row in needed.items()}
        print_json({"difference": difference, ("sd" if sd else "spread"): sds, "alpha": alpha, "seeds_per_arm": shown})
        return
    rows = [
        (name, show(math.sqrt(noise.per_seed)), *(show_count(needed[name][power]) for power in powers))
        for name, noise in designs.items()
    ]
    print_table(
        ("seeds of the two arms", "SD of a difference", *(f"seeds per arm, {power:.0%}" for power in powers)), rows
    )
    print_below(
        f"with these seeds per arm, a verdict at {alpha:g} is BETTER or WORSE as often as the column says for a true "
        f"difference of {difference:g}, if scores are normal and {_describe_sds(sds)}"
    )
    print_below(f"a verdict needs at least {MIN_SEEDS} seeds in any case; an SD from few seeds is often too small")


def _list_designs(difference: float, first: float, second: float) -> dict[str, "Noise"]:
    """Return the noise of a difference of two arms with these SDs, not paired and paired with several correlations."""
    from attnlab.statistics.estimate import Noise, welch_from
    from attnlab.statistics.verdict import MIN_SEEDS

    designs = {"not paired": welch_from((0.0, first, MIN_SEEDS), (difference, second, MIN_SEEDS)).noise}
    for correlation in CORRELATIONS:
        variance = first**2 + second**2 - 2 * correlation * first * second
        designs[f"paired, correlation {correlation:g}"] = Noise(variance, math.inf)
    return designs


def _describe_sds(sds: Sequence[float]) -> str:
    if len(sds) == 1:
        return f"the SD of the paired difference of one seed is {sds[0]:g}; both arms have the same seeds"
    return (
        f"the SDs of the arms over seeds are {sds[0]:g} and {sds[1]:g}; paired: both arms have the same seeds, and "
        "their scores are correlated"
    )


def _read_sds(text: str) -> tuple[float, float]:
    """Read one SD of both arms, or one of each."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or not all(MIN_NUMBER <= number <= MAX_NUMBER for number in numbers):
        raise RequestError(
            f"--sd takes a number above 0 in units of the score, or one for each arm, such as 0.3,2.75; it has {text}"
        )
    return numbers[0], numbers[-1]
