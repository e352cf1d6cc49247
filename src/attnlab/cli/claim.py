"""Seeds for a difference and an SD that are given as numbers, as a paper claims them, without a study."""

import math
from collections.abc import Sequence

from attnlab.cli.tables import print_below, print_json, print_table
from attnlab.errors import RequestError

CORRELATIONS = (0.0, 0.5, 0.8)
"""Of the scores of two arms with the same seed."""
MIN_NUMBER, MAX_NUMBER = 1e-100, 1e100
"""Squares of numbers outside cannot be computed."""


def plan_claim(difference: float, sd: str, powers: Sequence[float], alpha: float, as_json: bool) -> None:
    """Print how many seeds per arm detect a difference of two arms whose scores have these SDs over seeds."""
    from attnlab.statistics.estimate import Noise, welch_from
    from attnlab.statistics.formatting import show, show_count
    from attnlab.statistics.planning import seeds_needed
    from attnlab.statistics.verdict import MIN_SEEDS

    if not MIN_NUMBER <= difference <= MAX_NUMBER:
        raise RequestError(f"--difference takes a number above 0, in units of the score; it has {difference:g}")
    first, second = _read_sds(sd)
    designs = {"not paired": welch_from((0.0, first, MIN_SEEDS), (difference, second, MIN_SEEDS)).noise}
    for correlation in CORRELATIONS:
        variance = first**2 + second**2 - 2 * correlation * first * second
        designs[f"paired, correlation {correlation:g}"] = Noise(variance, math.inf)
    needed = {
        name: {power: seeds_needed(noise, difference, power, alpha) for power in powers}
        for name, noise in designs.items()
    }
    if as_json:
        shown = {name: {f"{power:g}": seeds for power, seeds in row.items()} for name, row in needed.items()}
        print_json({"difference": difference, "sd": [first, second], "alpha": alpha, "seeds_per_arm": shown})
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
        f"difference of {difference:g}, if scores are normal and the SDs of the arms over seeds are {first:g} and "
        f"{second:g}; paired: both arms have the same seeds, and their scores are correlated"
    )
    print_below(f"a verdict needs at least {MIN_SEEDS} seeds in any case; an SD from few seeds is often too small")


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
