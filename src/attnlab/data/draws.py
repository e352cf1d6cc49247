"""Random numbers without a state: each is a hash of a key, so any of them can be drawn alone and in any order.

The hash is SplitMix64's finaliser (Steele, Lea & Flood 2014), applied once for each part of a key.
"""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(numbers: Keys) -> Keys:
    """Return a hash of each number, in which every bit depends on every bit."""
    # Overflow is intended; numpy warns about it for scalars only.
    with np.errstate(over="ignore"):
        z = numbers + STEP
        z = (z ^ (z >> np.uint64(30))) * FIRST
        z = (z ^ (z >> np.uint64(27))) * SECOND
        return np.asarray(z ^ (z >> np.uint64(31)))


def keys_of(*parts: ArrayLike) -> Keys:
    """Return a key for a tuple of integers, such as seed, epoch and example; arrays broadcast."""
    key = np.zeros((), dtype=np.uint64)
    for part in parts:
        numbers = np.asarray(part)
        if numbers.dtype != np.uint64:
            # Through int64, since negative numbers do not convert to uint64 directly.
            numbers = numbers.astype(np.int64).astype(np.uint64)
        key = mix(key ^ mix(numbers))
    return key


def name_key(name: str) -> int:
    """Return a number for a name, so that draws for different purposes differ."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little", signed=True)


def draw_words(keys: Keys, count: int) -> Keys:
    """Draw `count` 64-bit words for each key: [..., count]."""
    with np.errstate(over="ignore"):
        return mix(keys[..., None] + np.arange(count, dtype=np.uint64) * STEP)


def draw_uniform(keys: Keys, count: int) -> NDArray[np.float64]:
    """Draw `count` numbers from [0, 1) for each key: [..., count]."""
    return (draw_words(keys, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_integers(keys: Keys, count: int, bound: int) -> NDArray[np.int64]:
    """Draw `count` integers from 0 to bound − 1 for each key: [..., count]."""
    return (draw_uniform(keys, count) * bound).astype(np.int64)


def draw_permutations(keys: Keys, count: int) -> NDArray[np.int64]:
    """Draw a permutation of `count` integers for each key: [..., count]."""
    return np.argsort(draw_words(keys, count), axis=-1, kind="stable").astype(np.int64)


def draw_distinct(keys: Keys, count: int, bound: int) -> NDArray[np.int64]:
    """Draw `count` different integers from 0 to bound − 1, in random order, for each key: [..., count].

    Floyd's algorithm (Bentley & Floyd 1987): its cost does not depend on the bound, which may be a vocabulary size.
    """
    chosen = np.full((*keys.shape, count), -1, dtype=np.int64)
    fractions = draw_uniform(keys_of(keys, 0), count)
    for place, last in enumerate(range(bound - count, bound)):
        drawn = (fractions[..., place] * (last + 1)).astype(np.int64)
        is_taken = (chosen[..., :place] == drawn[..., None]).any(axis=-1)
        chosen[..., place] = np.where(is_taken, last, drawn)
    return np.take_along_axis(chosen, draw_permutations(keys_of(keys, 1), count), axis=-1)


def draw_weighted(keys: Keys, count: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw `count` indices without replacement, each with probability proportional to its weight: [..., count].

    The indices of the smallest Exp(1) / weight, in ascending order, are such draws (Efraimidis & Spirakis 2006).
    """
    arrivals = -np.log1p(-draw_uniform(keys, weights.size)) / weights
    return np.argsort(arrivals, axis=-1, kind="stable")[..., :count].astype(np.int64)
