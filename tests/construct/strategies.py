"""Random keys of every kind that trips geometry: duplicates, lines, zeros, hulls, offsets, and all sizes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float64]

KINDS = ("normal", "whole", "duplicate", "collinear", "zero", "in hull", "offset", "tiny", "huge", "wide")


@st.composite
def keys_of_any_kind(draw: st.DrawFn, least: int = 1) -> Array:
    """Draw keys [n d]: one to eight of them in one to six dimensions, or forty."""
    kind = draw(st.sampled_from(KINDS))
    num_keys = draw(st.integers(least, 8))
    dim = 40 if kind == "wide" else draw(st.integers(1, 6))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    keys = generator.normal(size=(num_keys, dim))
    if kind == "whole":
        keys = generator.integers(-2, 3, size=(num_keys, dim)).astype(np.float64)
    elif kind == "duplicate":
        keys[generator.integers(num_keys)] = keys[0]
    elif kind == "collinear":
        keys = np.outer(generator.normal(size=num_keys), keys[0])
    elif kind == "zero":
        keys[generator.integers(num_keys)] = 0
    elif kind == "in hull" and num_keys > 2:
        keys[0] = generator.dirichlet(np.ones(num_keys - 1)) @ keys[1:]
    elif kind == "offset":
        keys += 10.0 ** generator.integers(0, 5)
    elif kind in ("tiny", "huge"):
        keys *= 10.0 ** (generator.integers(6, 100) * (-1 if kind == "tiny" else 1))
    return keys


@st.composite
def keys_and_subset(draw: st.DrawFn) -> tuple[Array, list[int]]:
    """Draw keys and some of their numbers."""
    keys = draw(keys_of_any_kind())
    return keys, draw(st.lists(st.integers(0, len(keys) - 1), min_size=1, unique=True))


def exact_scores(keys: Array, query: Array) -> list[Fraction]:
    """Return q·k without any rounding."""
    return [
        sum((Fraction(k) * Fraction(q) for k, q in zip(key.tolist(), query.tolist(), strict=True)), Fraction())
        for key in keys
    ]
