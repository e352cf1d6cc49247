"""Repeated looks at a growing number of seeds, declared beforehand, each with its own limit for p.

O'Brien and Fleming (1979): look k of K rejects at |z| ≥ C·√(n_K/n_k), with C such that all looks together have a
false-positive rate of alpha. C comes from integrating the path of the statistic (Armitage, McPherson and Rowe 1969).
"""

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
"""The looks that attnlab declares by default."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(160)
FARTHEST = 9.0
"""In SDs; beyond this the density of a path is 0 in double precision."""


def look_limits(looks: Sequence[int] = LOOKS, alpha: float = 0.05) -> dict[int, float]:
    """Return the p-value below which each look may end a study, by its number of seeds."""
    return dict(_compute_limits(_check_looks(looks), alpha))


def limit_at(num_seeds: int, looks: Sequence[int], alpha: float = 0.05) -> float:
    """Return the limit of the look at this number of seeds; a number that was not declared is an error."""
    limits = look_limits(looks, alpha)
    if num_seeds not in limits:
        later = [look for look in limits if look > num_seeds]
        advice = f"the next look is at {later[0]}" if later else "that was the last one: more seeds are a new study"
        raise StatisticsError(
            f"{num_seeds} seeds are not one of the declared looks ({', '.join(map(str, limits))}); {advice}. Looks in "
            "between raise the false-positive rate"
        )
    return limits[num_seeds]


def sequential_p(p: float, num_seeds: int, looks: Sequence[int]) -> float:
    """Return the smallest alpha at which this look would end the study with this p-value; families adjust it."""
    declared = _check_looks(looks)
    if math.isnan(p):
        return p
    constant = -float(ndtri(p / 2)) * math.sqrt(num_seeds / declared[-1])
    if constant <= 0:
        return 1.0
    if not math.isfinite(constant):
        return 0.0
    information = [look / declared[-1] for look in declared]
    bounds = [constant / math.sqrt(share) for share in information]
    return min(1.0, max(p, crossing_probability(bounds, information)))


def crossing_probability(bounds: Sequence[float], information: Sequence[float]) -> float:
    """Return how often a null statistic reaches one of the bounds |z| at these shares of the data."""
    path, weights = _make_grid(bounds[0], information[0])
    density = normal_density(path, information[0])
    for number in range(1, len(bounds)):
        further, further_weights = _make_grid(bounds[number], information[number])
        step = information[number] - information[number - 1]
        density = normal_density(further[:, None] - path[None, :], step) @ (weights * density)
        path, weights = further, further_weights
    return float(1 - weights @ density)


@cache
def _compute_limits(looks: tuple[int, ...], alpha: float) -> tuple[tuple[int, float], ...]:
    information = [look / looks[-1] for look in looks]
    shape = [1 / math.sqrt(share) for share in information]

    def excess(constant: float) -> float:
        return crossing_probability([constant * factor for factor in shape], information) - alpha

    alone = -float(ndtri(alpha / 2))
    constant = alone if len(looks) == 1 else float(scipy.optimize.brentq(excess, alone, 2 * alone, xtol=1e-6))
    return tuple((look, float(2 * ndtr(-constant * f))) for look, f in zip(looks, shape, strict=True))


def _check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    is_valid = not isinstance(looks, str) and looks and all(isinstance(look, int) and look >= 2 for look in looks)
    if not is_valid or any(later <= earlier for earlier, later in pairwise(looks)):
        raise StatisticsError(f"looks must be increasing numbers of seeds, such as (5, 10, 15, 20), not {looks!r}")
    return tuple(looks)


def _make_grid(bound: float, share: float) -> tuple[Numbers, Numbers]:
    """Return nodes and weights for an integral over the statistic's path inside the bound."""
    reach = min(bound, FARTHEST) * math.sqrt(share)
    return NODES * reach, WEIGHTS * reach


def normal_density(x: Numbers, variance: float = 1.0) -> Numbers:
    """Return the density of a normal distribution with mean 0."""
    density: Numbers = np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return density
