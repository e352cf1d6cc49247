"""How often a t test finds an effect, and how much what it finds exaggerates it (Gelman and Carlin 2014).

The noncentral t is computed as a mean over the SD that a sample may show: special functions for it lose large effects.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from .scores import Numbers

NODES, WEIGHTS = (np.array(column) / 2 for column in np.polynomial.legendre.leggauss(200))
"""Of Gauss and Legendre, for an integral from 0 to 1; nodes are relative to its middle."""


def power_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return how often an effect is found at two-sided alpha, given the standard error and its degrees of freedom."""
    if se <= 0:
        return 1.0
    if not df > 0:
        return math.nan
    shift, limits = abs(effect) / se, _limits(df, alpha)
    return float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))


def exaggeration_at(se: float, df: float, effect: float, alpha: float = 0.05) -> float:
    """Return the mean size of the differences that are found, over the true effect: 2.6 is 2.6 times too large."""
    if se <= 0:
        return 1.0
    if not df > 0:
        return math.nan
    shift, limits = abs(effect) / se, _limits(df, alpha)
    # E[|x|; |x| > c] of a normal x with mean `shift` and SD 1.
    above = shift * ndtr(shift - limits) + _density(limits - shift)
    below = -shift * ndtr(-shift - limits) + _density(limits + shift)
    found = float(WEIGHTS @ (ndtr(shift - limits) + ndtr(-shift - limits)))
    return float(WEIGHTS @ (above + below)) / (found * shift) if found > 0 else math.inf


def _limits(df: float, alpha: float) -> Numbers:
    """The difference that is just found, in true standard errors, at each node of the SD that a sample may show."""
    shown: Numbers = np.sqrt(chdtri(df, 0.5 - NODES) / df)
    return -float(stdtrit(df, alpha / 2)) * shown


def _density(x: Numbers) -> Numbers:
    density: Numbers = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return density
