"""Looking again after more seeds: looks that are declared beforehand, each with a stricter limit than the last.

O'Brien and Fleming (1979): the k-th of K looks rejects at |z| ≥ C·√(n_K/n_k), C such that all looks together reject
5 % of nothing. C comes from integrating the path of the statistic (Armitage, McPherson and Rowe 1969).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import scipy
from scipy.special import ndtr, ndtri

from attnlab.errors import StatisticsError

from .scores import Numbers

LOOKS = (5, 10, 15, 20)
"""The looks that attnlab declares unless a study says otherwise."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(160)
FARTHEST = 9.0
"""No path is farther out than so many SDs, to the precision of a double."""


def look_limits(looks: Sequence[int] = LOOKS, alpha: float = 0.05) -> dict[int, float]:
    """Return the p below which each look may end a study, by its number of seeds."""
    return dict(_limits(_checked(looks), alpha))


def limit_at(num_seeds: int, looks: Sequence[int], alpha: float = 0.05) -> float:
    """Return the limit of the look at this number of seeds; a number that was not declared is an error."""
    limits = look_limits(looks, alpha)
    if num_seeds not in limits:
        later = [look for look in limits if look > num_seeds]
        advice = f"the next look is at {later[0]}" if later else "there is none left: more seeds are another study"
        raise StatisticsError(
            f"{num_seeds} seeds are none of the declared looks ({', '.join(map(str, limits))}); {advice}. Looking "
            "between them finds differences where there are none"
        )
    return limits[num_seeds]


def sequential_p(p: float, num_seeds: int, looks: Sequence[int]) -> float:
    """Return the smallest alpha at which this look would end the study with this p: what a family adjusts."""
    declared = _checked(looks)
    if math.isnan(p):
        return p
    share = num_seeds / declared[-1]
    constant = -float(ndtri(p / 2)) * math.sqrt(share)
    if constant <= 0:
        return 1.0
    if not math.isfinite(constant):
        return 0.0
    information = [look / declared[-1] for look in declared]
    return min(1.0, max(p, crossing_probability([constant / math.sqrt(one) for one in information], information)))


def crossing_probability(bounds: Sequence[float], information: Sequence[float]) -> float:
    """Return how often a statistic without any effect reaches one of the bounds |z| at these shares of the data."""
    path, weights = _grid(bounds[0], information[0])
    density = _normal(path, information[0])
    for number in range(1, len(bounds)):
        further, further_weights = _grid(bounds[number], information[number])
        step = information[number] - information[number - 1]
        density = _normal(further[:, None] - path[None, :], step) @ (weights * density)
        path, weights = further, further_weights
    return float(1 - weights @ density)


@cache
def _limits(looks: tuple[int, ...], alpha: float) -> tuple[tuple[int, float], ...]:
    information = [look / looks[-1] for look in looks]
    shape = [1 / math.sqrt(share) for share in information]

    def excess(constant: float) -> float:
        return crossing_probability([constant * factor for factor in shape], information) - alpha

    alone = -float(ndtri(alpha / 2))
    constant = alone if len(looks) == 1 else float(scipy.optimize.brentq(excess, alone, 2 * alone, xtol=1e-6))
    return tuple((look, float(2 * ndtr(-constant * f))) for look, f in zip(looks, shape, strict=True))


def _checked(looks: Sequence[int]) -> tuple[int, ...]:
    wanted = "looks are numbers of seeds that grow, such as (5, 10, 15, 20)"
    if isinstance(looks, str) or not all(isinstance(look, int) and look >= 2 for look in looks) or not looks:
        raise StatisticsError(f"{wanted}; {looks!r} came")
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise StatisticsError(f"{wanted}; {tuple(looks)} do not grow")
    return tuple(looks)


def _grid(bound: float, share: float) -> tuple[Numbers, Numbers]:
    """Return nodes and weights of an integral over the statistic's path inside the bound."""
    reach = min(bound, FARTHEST) * math.sqrt(share)
    return NODES * reach, WEIGHTS * reach


def _normal(x: Numbers, variance: float) -> Numbers:
    density: Numbers = np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return density
