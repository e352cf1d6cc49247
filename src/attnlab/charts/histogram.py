"""How many things there are of each size: bars over a logarithmic axis, with quantiles marked above them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .chart import SCHEMA, Spec
from .theme import FILE, Theme, config

WIDTH, HEIGHT = 560, 260
APART = 0.07
"""The part of the axis that the words of two marks need between them; closer ones stand at different heights."""
LINE = 14


def draw(
    edges: Sequence[float],
    counts: Sequence[int],
    titles: tuple[str, str, str, str],
    marks: Mapping[str, float] | None = None,
    theme: Theme = FILE,
) -> Spec:
    """Draw a bar between each edge and the next.

    `titles` are the chart's, its subtitle, and the names of the axes across and up. `marks` are places across,
    each with its words.
    """
    title, subtitle, across, up = titles
    bars = [
        {"from": low, "to": high, "count": count}
        for (low, high), count in zip(pairwise(edges), counts, strict=True)
        if count
    ]
    domain = [edges[0], edges[-1]]
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {"title": across, "values": ticks(*domain), "format": ",d", "grid": False},
    }
    rows = heights(marks or {}, domain)
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle, "offset": 12},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "rect", "fill": theme.blue, "stroke": theme.background, "strokeWidth": 1},
                "encoding": {
                    "x": {"field": "from", **x},
                    "x2": {"field": "to"},
                    "y": {"field": "count", "type": "quantitative", "axis": {"title": up, "tickCount": 5}},
                    "y2": {"datum": 0},
                    "tooltip": [{"field": name, "type": "quantitative"} for name in ("from", "to", "count")],
                },
            },
            *_marks(marks or {}, rows, x, theme),
        ],
        "config": config(theme),
    }


def _marks(
    marks: Mapping[str, float], rows: Mapping[str, int], x: dict[str, Any], theme: Theme
) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    for name, place in marks.items():
        where = {"data": {"values": [{"at": place}]}}
        at = {"x": {"field": "at", **x}}
        line = {"type": "rule", "stroke": theme.orange, "strokeWidth": 1.5, "strokeDash": [4, 3]}
        said = {"type": "text", "text": f"{name} {place:,.0f}", "fontSize": 11, "fill": theme.ink}
        layers.append({**where, "mark": {**line, "y": 0, "y2": "height"}, "encoding": at})
        layers.append({**where, "mark": {**said, "y": -8 - LINE * rows[name]}, "encoding": at})
    return layers


def heights(marks: Mapping[str, float], domain: Sequence[float]) -> dict[str, int]:
    """Give each mark's words a height at which they meet no other's: the lowest that is free."""
    low, high = (math.log(end) for end in domain)
    last: dict[int, float] = {}
    found = {}
    for name, place in sorted(marks.items(), key=lambda item: item[1]):
        share = (math.log(place) - low) / (high - low) if high > low else 0.0
        room = APART * (1 + len(name) / 12)
        row = next(row for row in range(len(marks) + 1) if row not in last or share - last[row] > 2 * room)
        found[name] = row
        last[row] = share
    return found


def ticks(low: float, high: float) -> list[int]:
    """Return round numbers across the axis: powers of ten, with 2 and 5 between where these are few."""
    powers = [10**power for power in range(12)]
    many = [step * power for power in powers for step in (1, 2, 5) if low <= step * power <= high]
    few = [power for power in powers if low <= power <= high]
    return few if len(few) > 4 else many
