"""The panels that pictures of constructions are made of: the keys asked for are always shown, others as room allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from attnlab.charts.panels import Bars

from .words import name_key

MOST_BARS, MOST_LINES = 10, 5
OTHERS = "all others"
STEPS = 61
"""How many points a curve has."""
NO_NAMES: Mapping[int, str] = MappingProxyType({})

Place = tuple[float, float]
Lines = dict[str, list[Place]]


def weight_bars(
    groups: Mapping[str, Tensor], subset: Sequence[int], title: str, names: Mapping[int, str] = NO_NAMES
) -> Bars:
    """Show each query's weights of a subset and of the heaviest other keys; the rest stand as one bar."""
    shown, left = shown_keys(list(groups.values())[-1], subset, MOST_BARS)
    labels = [names.get(i, name_key(i)) for i in shown] + ([f"{len(left)} more"] if left else [])
    heights = {
        name: [float(weights[i]) for i in shown] + ([float(weights[left].sum())] if left else [])
        for name, weights in groups.items()
    }
    return Bars(title, labels, heights)


def weight_lines(xs: Tensor, weights: Tensor, subset: Sequence[int], names: Mapping[int, str] = NO_NAMES) -> Lines:
    """Return how the weights [x n] of a subset change, as lines by name, and all others' as one more: OTHERS."""
    shown = list(subset)[:MOST_LINES]
    lines = {names.get(i, name_key(i)): points_of(xs, weights[:, i]) for i in shown}
    rest = [i for i in range(weights.shape[1]) if i not in shown]
    return lines | ({OTHERS: points_of(xs, weights[:, rest].sum(dim=1))} if rest else {})


def shown_keys(weights: Tensor, subset: Sequence[int], most: int) -> tuple[list[int], list[int]]:
    """Return the keys to show one by one, in order: the subset, then the heaviest; and the keys that are left."""
    if len(weights) <= most:
        return list(range(len(weights))), []
    rest = [i for i in weights.argsort(descending=True, stable=True).tolist() if i not in subset]
    shown = sorted([*subset, *rest][: most - 1])
    return shown, [i for i in range(len(weights)) if i not in shown]


def points_of(xs: Tensor, ys: Tensor) -> list[Place]:
    """Return the points of one curve; five digits are finer than a picture."""
    return [(float(f"{x:.5g}"), float(f"{y:.5g}")) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]


def principal_plane(keys: Tensor) -> list[Place]:
    """Return where keys lie in the plane in which they spread most."""
    centred = keys - keys.mean(dim=0)
    # Divided by the largest, so that no key is too large or small to be squared.
    centred = centred / max(float(centred.abs().max()), 1e-300)
    axes = torch.linalg.svd(centred, full_matrices=True)[2][:2]
    spots = (centred @ axes.T).tolist()
    return [(float(spot[0]), float(spot[1]) if len(spot) > 1 else 0.0) for spot in spots]


def hull_of(places: Sequence[Place]) -> list[Place]:
    """Return the corners of the convex hull of some places, in order around it."""
    ordered = sorted(set(places))
    if len(ordered) < 3:
        return ordered
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return lower[:-1] + upper[:-1]


def _chain(ordered: Sequence[Place]) -> list[Place]:
    """Return one side of the hull: the corners at which the way from the first place to the last turns left."""
    chain: list[Place] = []
    for x, y in ordered:
        while len(chain) > 1:
            (x1, y1), (x2, y2) = chain[-2:]
            if (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain
