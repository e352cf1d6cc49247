"""Evidence that stays valid if it is examined after every seed: an e-process for the mean of normal differences.

With μ/σ ~ N(0, g) and the right Haar prior on σ, the ratio of likelihoods is
E_n = (1 + ng)^−½ · ((1 + t²/ν)/(1 + t²/(ν(1 + ng))))^(n/2), ν = n − 1. Without an effect it ever reaches 1/α with
probability at most α (Lai 1976; Grünwald, de Heide and Koolen 2024; Wang and Ramdas 2023).
"""

import math
from dataclasses import dataclass

import numpy as np

from .scores import Numbers

PRIOR = 1.0
"""g, for effects of about one SD, which 10 seeds can detect."""


@dataclass(frozen=True)
class EProcess:
    """The evidence after each seed from the second on, and the interval that is valid at any time."""

    path: tuple[float, ...]
    interval: tuple[float, float]
    method: str = "e-process, normal mixture"

    @property
    def e(self) -> float:
        """The present evidence against no difference; α = 0.05 requires 20."""
        return self.path[-1] if self.path else 1.0

    @property
    def p(self) -> float:
        """A p-value that stays valid after any number of looks: 1/e, at most 1."""
        return min(1.0, 1 / self.e) if self.e > 0 else 1.0


def e_process(differences: Numbers, alpha: float = 0.05, prior: float = PRIOR) -> EProcess:
    """Compute the evidence of differences in the order of the runs."""
    path = tuple(math.exp(min(700.0, value)) for value in log_evidence(differences[None, :], prior)[0])
    return EProcess(path, confidence_interval(differences, alpha, prior))


def log_evidence(differences: Numbers, prior: float = PRIOR) -> Numbers:
    """Return log E_n for n = 2, 3, …, along the last axis of [series, seed]."""
    n = np.arange(2, differences.shape[-1] + 1)
    # Cumulative sums of squares lose the spread of large numbers, so subtract the first one; it is added back below.
    shift = differences[..., :1]
    sums = np.cumsum(differences - shift, axis=-1)[..., 1:]
    squares = np.cumsum((differences - shift) ** 2, axis=-1)[..., 1:]
    around_mean = np.maximum(squares - sums**2 / n, 0.0)
    of_mean = n * (sums / n + shift) ** 2
    growth = 1 + n * prior
    # (1 + t²/ν)/(1 + t²/(ν·growth)) in sums of squares, which stays finite if the spread is 0.
    below = around_mean + of_mean / growth
    ratio = np.divide(around_mean + of_mean, below, out=np.ones_like(below), where=below > 0)
    evidence: Numbers = n / 2 * np.log(ratio) - np.log(growth) / 2
    return evidence


def confidence_interval(differences: Numbers, alpha: float = 0.05, prior: float = PRIOR) -> tuple[float, float]:
    """Return the means against which the evidence is below 1/α; it covers the true one at all times at once."""
    n = len(differences)
    growth = 1 + n * prior
    reach = (growth / alpha**2) ** (1 / n)
    if n < 2 or reach >= growth:
        return -math.inf, math.inf
    t_squared = (n - 1) * (reach - 1) / (1 - reach / growth)
    mean, half = float(differences.mean()), math.sqrt(t_squared * float(np.var(differences, ddof=1)) / n)
    return mean - half, mean + half
