"""Time and memory against length, both axes logarithmic: the slope of a line is the power of its growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chart import SCHEMA, Spec

# Okabe and Ito's colours, told apart with any kind of colour vision; yellow is left out, too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [5, 4], [1, 3])

INK, PALE = "#333333", "#E4E4E4"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
CONFIG = {
    "background": "white",
    "padding": 12,
    "font": FONT,
    "view": {"stroke": None},
    "concat": {"spacing": 36},
    "title": {"anchor": "start", "fontSize": 16, "color": INK, "subtitleColor": INK, "offset": 16},
    "axis": {
        "gridColor": PALE,
        "domainColor": INK,
        "tickColor": INK,
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "labelFlush": False,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {
        "orient": "bottom",
        "direction": "vertical",
        "columns": 2,
        "labelFontSize": 12,
        "labelColor": INK,
        "labelLimit": 0,
        "symbolSize": 90,
        "symbolStrokeWidth": 2,
        "columnPadding": 28,
        "offset": 16,
    },
}


@dataclass(frozen=True)
class Point:
    """What one line costs at one length. `kind` separates lines of one name by their dashes."""

    name: str
    kind: str
    length: int
    seconds: float
    memory: int


def draw(points: Sequence[Point], title: str, subtitle: str = "") -> Spec:
    """Draw a panel of time and a panel of memory, a line for each name and kind."""
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
    panels = (("milliseconds", "time, ms"), ("megabytes", "peak extra memory, MB"))
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle},
        "data": {"values": values},
        "hconcat": [_panel(values, field, label) for field, label in panels],
        "config": CONFIG,
    }


def _panel(values: list[dict[str, Any]], field: str, label: str) -> dict[str, Any]:
    return {
        "width": 340,
        "height": 300,
        # A logarithmic axis has no place for 0, which is what a step without memory of its own takes.
        "transform": [{"filter": f"datum.{field} > 0"}],
        "encoding": {
            "x": _length_axis([value["length"] for value in values]),
            "y": _cost_axis([value[field] for value in values if value[field] > 0], field, label),
            "color": _marks(values, "name", COLOURS),
            "tooltip": [
                {"field": "name", "type": "nominal", "title": "line"},
                {"field": "kind", "type": "nominal", "title": "computed by"},
                {"field": "length", "type": "quantitative", "title": "length, tokens"},
                {"field": field, "type": "quantitative", "title": label, "format": ".3~r"},
            ],
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": _dashes(values)}},
            {
                "mark": {"type": "point", "size": 45, "filled": True, "opacity": 1},
                "encoding": {"shape": _marks(values, "name", SHAPES)},
            },
        ],
    }


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
    first = math.floor(math.log10(min(costs, default=1)))
    last = math.ceil(math.log10(max(costs, default=10)))
    last = max(last, first + 1)
    # Powers of ten alone read best, but over one or two of them there would be too few.
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": [10.0**first, 10.0**last], "nice": False},
        "axis": {"values": [tick for tick in ticks if tick <= 10.0**last], "format": ",~g", "title": label},
    }


def _marks(values: list[dict[str, Any]], field: str, marks: Sequence[Any]) -> dict[str, Any]:
    """Give each name its mark, from the start again where there are more names than marks."""
    domain = list(dict.fromkeys(value[field] for value in values))
    chosen = [marks[number % len(marks)] for number in range(len(domain))]
    return {"field": field, "type": "nominal", "title": None, "scale": {"domain": domain, "range": chosen}}


def _dashes(values: list[dict[str, Any]]) -> dict[str, Any]:
    dashes = _marks(values, "kind", DASHES)
    is_needed = len(dashes["scale"]["domain"]) > 1
    stroke = {"symbolType": "stroke", "symbolSize": 500, "clipHeight": 16, "columns": 1}
    return {**dashes, "legend": stroke if is_needed else None}
