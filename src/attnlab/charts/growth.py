"""Time and memory against length, both axes logarithmic: lines beside the thin guides n and n² grow as these do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chart import SCHEMA, Spec
from .theme import FILE, SPACING, Theme, config

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [5, 4], [1, 3])

PANELS = {"milliseconds": "time, ms", "megabytes": "peak extra memory, MB"}
"""What can be drawn against the length, and what its axis says."""

WIDTH, HEIGHT = 340, 300
GUIDES = {"n": 1, "n²": 2}
"""The growths that every panel shows beside its lines, and their powers of the length."""

PIXELS_PER_CHARACTER = 6.5
SYMBOL_WIDTH = 36
"""What a legend's entry takes besides its label: its symbol and the room around both."""


@dataclass(frozen=True)
class GrowthPoint:
    """What one line costs at one length. `kind` separates lines of one name by their dashes."""

    name: str
    kind: str
    length: int
    seconds: float
    memory: int


def draw(
    points: Sequence[GrowthPoint],
    title: str,
    subtitle: str | Sequence[str] = "",
    fields: Sequence[str] = tuple(PANELS),
    theme: Theme = FILE,
) -> Spec:
    """Draw a panel of time and a panel of memory, or one of them, with a line for each name and kind."""
    values = [
        {
            "name": point.name,
            "kind": point.kind,
            "length": point.length,
            "milliseconds": point.seconds * 1e3,
            "megabytes": point.memory / 1e6,
        }
        for point in points
    ]
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle if isinstance(subtitle, str) else list(subtitle)},
        "data": {"values": values},
        "hconcat": [_panel(values, field, len(fields), theme) for field in fields],
        "config": config(theme),
    }


def _panel(values: list[dict[str, Any]], field: str, num_panels: int, theme: Theme) -> dict[str, Any]:
    label = PANELS[field]
    x = _length_axis([value["length"] for value in values])
    y = _cost_axis([value[field] for value in values if value[field] > 0], field, label)
    legend = _legend([value["name"] for value in values], num_panels)
    told_apart = {
        "color": {**_marks(values, "name", theme.colours), "legend": legend},
        "tooltip": [
            {"field": "name", "type": "nominal", "title": "line"},
            {"field": "kind", "type": "nominal", "title": "computed by"},
            {"field": "length", "type": "quantitative", "title": "length, tokens"},
            {"field": field, "type": "quantitative", "title": label, "format": ".3~r"},
        ],
    }
    shape = {**_marks(values, "name", SHAPES), "legend": legend}
    return {
        "width": WIDTH,
        "height": HEIGHT,
        # A logarithmic axis has no place for 0, which is what a step without memory of its own takes.
        "transform": [{"filter": f"datum.{field} > 0"}],
        "encoding": {"x": x, "y": y},
        "layer": [
            *_guides([value["length"] for value in values], field, y["scale"]["domain"], theme),
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {**told_apart, "strokeDash": _dashes(values)},
            },
            {
                "mark": {"type": "point", "size": 45, "filled": True, "opacity": 1},
                "encoding": {**told_apart, "shape": shape},
            },
        ],
    }


def _guides(lengths: list[int], field: str, domain: list[float], theme: Theme) -> list[dict[str, Any]]:
    """Draw how n and n² grow from the lower left corner, each up to the longest length or the upper edge."""
    if len(set(lengths)) < 2:
        return []
    (shortest, longest), (low, high) = (min(lengths), max(lengths)), domain
    layers: list[dict[str, Any]] = []
    for name, power in GUIDES.items():
        end = min(longest, shortest * (high / low) ** (1 / power))
        ends = [{"length": length, field: low * (length / shortest) ** power} for length in (shortest, end)]
        line = {"type": "line", "stroke": theme.ink, "strokeWidth": 1, "opacity": 0.4}
        below = {"align": "right", "baseline": "top", "dx": -6}
        text = {"type": "text", "text": name, **below, "fill": theme.ink, "opacity": 0.7}
        layers.append({"data": {"values": ends}, "mark": line})
        layers.append({"data": {"values": ends[1:]}, "mark": text})
    return layers


def _legend(names: list[str], num_panels: int) -> dict[str, Any]:
    """Lay the labels out in two columns, or in one where they are long, and end them where the plots end."""
    width = num_panels * WIDTH + (num_panels - 1) * SPACING
    longest = max((len(name) for name in names), default=0) * PIXELS_PER_CHARACTER + SYMBOL_WIDTH
    columns = 2 if 2 * longest <= width else 1
    return {"columns": columns, "labelLimit": width // columns - SYMBOL_WIDTH}


def _length_axis(lengths: list[int]) -> dict[str, Any]:
    # A little air on both sides, so that no point sits on the frame.
    domain = [min(lengths) / 1.15, max(lengths) * 1.15] if lengths else [1, 2]
    return {
        "field": "length",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": domain, "nice": False},
        "axis": {"values": sorted(set(lengths)), "format": "d", "title": "length, tokens"},
    }


def _cost_axis(costs: list[float], field: str, label: str) -> dict[str, Any]:
    low, high = min(costs, default=1.0), max(costs, default=10.0)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    steps = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    first, last = max(step for step in steps if step <= low), min(step for step in steps if step > high)
    # Powers of ten alone read best, but over one or two of them there would be too few.
    is_wide = last / first > 100
    ticks = [step for step in steps if first <= step <= last and (not is_wide or f"{step:e}".startswith("1."))]
    return {
        "field": field,
        "type": "quantitative",
        # Air at the top: the highest tick's label must not make one panel taller than the other.
        "scale": {"type": "log", "domain": [first, last * (last / first) ** 0.03], "nice": False},
        # As much room for the labels in every panel, so that all are of one size.
        "axis": {"values": ticks, "format": ",~g", "title": label, "minExtent": 36},
    }


def _marks(values: list[dict[str, Any]], field: str, marks: Sequence[Any]) -> dict[str, Any]:
    """Give each name its mark, from the start again where there are more names than marks.

    There is one colour more than there are shapes, so that no pair of both returns within their product.
    """
    domain = list(dict.fromkeys(value[field] for value in values))
    chosen = [marks[number % len(marks)] for number in range(len(domain))]
    return {"field": field, "type": "nominal", "title": None, "scale": {"domain": domain, "range": chosen}}


def _dashes(values: list[dict[str, Any]]) -> dict[str, Any]:
    dashes = _marks(values, "kind", DASHES)
    is_needed = len(dashes["scale"]["domain"]) > 1
    stroke = {"symbolType": "stroke", "symbolSize": 500, "clipHeight": 16, "columns": 1}
    return {**dashes, "legend": stroke if is_needed else None}
