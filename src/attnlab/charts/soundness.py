"""What an audit saw: the leak map, who depends on whom, and the growth of the output with the length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .chart import SCHEMA, Spec
from .evidence import SIZE, heading
from .theme import FILE, GREEN, PURPLE, Theme, config

FAINTEST = 1e-6
"""What is drawn palest, as a share of the strongest dependence; what is exactly 0 is not drawn at all."""

GUIDES = {"√n": 0.5, "n": 1.0}


def draw(title: str, subtitle: Sequence[str], panels: Sequence[dict[str, Any]], theme: Theme = FILE) -> Spec:
    """Draw panels of an audit under one title, two in a row."""
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": list(subtitle)},
        "concat": list(panels),
        "columns": 2,
        "resolve": {"scale": {"color": "independent"}},
        "config": config(theme),
    }


def leak_map(leaks: Sequence[Sequence[float]], theme: Theme) -> dict[str, Any]:
    """Draw how strongly output i depends on token j, row by row; what is later than its output in orange."""
    num_tokens = len(leaks)
    strongest = max((abs(size) for row in leaks for size in row), default=0) or 1.0
    values: list[dict[str, Any]] = [
        {
            "output": i, "below": i + 1, "token": j, "right": j + 1, "dependence": size,
            "whose": "later token: a leak" if j > i else "allowed",
            "strength": 1 + max(math.log10(abs(size) / strongest), -6) / 6 * 0.85,
        }
        for i, row in enumerate(leaks)
        for j, size in enumerate(row)
        if abs(size) > FAINTEST**2 * strongest
    ]  # fmt: skip
    scale = {"domain": ["allowed", "later token: a leak"], "range": [theme.blue, theme.orange]}
    has_leak = any(value["token"] > value["output"] for value in values)
    subtitle = "orange: an output that depends on a later token" if has_leak else "no output depends on a later token"
    return {
        "title": heading("Who depends on whom", subtitle),
        "width": SIZE,
        "height": SIZE,
        "data": {"values": values},
        "mark": {"type": "rect", "stroke": theme.background, "strokeWidth": 0.5, "aria": False},
        "encoding": {
            "x": _tokens("token", num_tokens),
            "x2": {"field": "right"},
            "y": _tokens("output", num_tokens),
            "y2": {"field": "below"},
            "fill": {"field": "whose", "type": "nominal", "scale": scale, "legend": None},
            "fillOpacity": {"field": "strength", "type": "quantitative", "scale": None},
            "tooltip": [
                {"field": "output", "type": "quantitative"},
                {"field": "token", "type": "quantitative"},
                {"field": "dependence", "type": "quantitative", "format": ".2e"},
            ],
        },
    }


def _tokens(field: str, num_tokens: int) -> dict[str, Any]:
    axis = {
        "values": [i + 0.5 for i in range(0, num_tokens, max(1, math.ceil(num_tokens / 8)))],
        "labelExpr": "floor(datum.value)",
        "grid": False,
        "domain": False,
        "ticks": False,
        "title": "token that is changed" if field == "token" else "output that is watched",
    }
    scale = {"domain": [0, num_tokens], "nice": False, "reverse": field == "output"}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def growth_curves(growth: Mapping[str, Sequence[float]], lengths: Sequence[int], theme: Theme) -> dict[str, Any]:
    """Draw the size of the output by kind of token against the length."""
    values: list[dict[str, Any]] = [
        {"kind": kind, "length": length, "size": size}
        for kind, sizes in growth.items()
        for length, size in zip(lengths, sizes, strict=True)
        if size > 0 and math.isfinite(size)
    ]
    domain = _range([value["size"] for value in values])
    kinds = list(dict.fromkeys(value["kind"] for value in values))
    scale = {"domain": kinds, "range": [theme.blue, GREEN, PURPLE][: len(kinds)]}
    color = {"field": "kind", "type": "nominal", "title": None, "scale": scale}
    x = {
        "field": "length",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [min(lengths) / 1.15, max(lengths) * 1.15], "nice": False},
        "axis": {"values": list(lengths), "format": "d", "title": "length, tokens"},
    }
    y = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {"title": "size of the output", "format": "~g", "values": _ticks(domain), "minExtent": 36},
    }
    return {
        "title": heading("Growth with the length", "level is sound; the thin lines grow as √n and n"),
        "width": SIZE,
        "height": SIZE,
        "encoding": {"x": x, "y": y},
        "layer": [
            *_guides(lengths, domain, theme),
            {"data": {"values": values}, "mark": {"type": "line", "strokeWidth": 2}, "encoding": {"color": color}},
            {
                "data": {"values": values},
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {"color": color, "tooltip": [
                    {"field": "kind", "type": "nominal"},
                    {"field": "length", "type": "quantitative"},
                    {"field": "size", "type": "quantitative", "format": ".3~r"},
                ]},
            },
        ],
    }  # fmt: skip


def _range(sizes: Sequence[float]) -> list[float]:
    """Return a range of at least two powers of ten around the sizes, so that what is level looks level."""
    if not sizes:
        return [0.1, 10.0]
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    missing = max(0.0, 2.2 - (high - low)) / 2 + 0.1
    return [10 ** (low - missing), 10 ** (high + missing)]


def _ticks(domain: list[float]) -> list[float]:
    """Return the powers of ten, and their doubles and fives where there are few, within a range."""
    low, high = domain
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 1e3 else (1,)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def _guides(lengths: Sequence[int], domain: list[float], theme: Theme) -> list[dict[str, Any]]:
    """Draw how √n and n grow from the lower left corner, each up to the longest length or the upper edge."""
    (shortest, longest), (low, high) = (min(lengths), max(lengths)), domain
    low *= 1.1
    layers: list[dict[str, Any]] = []
    for name, power in GUIDES.items():
        end = min(longest, shortest * (high / low) ** (1 / power))
        ends = [{"length": length, "size": low * (length / shortest) ** power} for length in (shortest, end)]
        line = {"type": "line", "stroke": theme.ink, "strokeWidth": 1, "opacity": 0.4}
        text = {"type": "text", "text": name, "align": "right", "baseline": "top", "dy": 8, "fill": theme.ink}
        layers.append({"data": {"values": ends}, "mark": line})
        layers.append({"data": {"values": ends[1:]}, "mark": {**text, "opacity": 0.7}})
    return layers
