"""Numbers of an audit as panels: bars with their figures beside them, and differences against what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .theme import Theme

SIZE = 300
ROW = 26
LEAST = 1e-17
"""Where 0 stands on an axis of differences, which is logarithmic."""


@dataclass(frozen=True)
class Bar:
    """A number with its name; a strong one stands out."""

    name: str
    value: float
    is_strong: bool = False


@dataclass(frozen=True)
class Margin:
    """A difference that was measured, and the largest that is allowed."""

    name: str
    figure: float
    bound: float


def heading(title: str, subtitle: str) -> dict[str, Any]:
    """Return a panel's title."""
    return {"text": title, "subtitle": subtitle, "fontSize": 13, "offset": 8}


def bars(
    title: tuple[str, str], rows: Sequence[Bar], theme: Theme, rule: tuple[float, str] | None = None
) -> dict[str, Any]:
    """Draw bars from left to right with their figures, and a rule across them at a number with its name."""
    names = [row.name for row in rows]
    most = max([abs(row.value) for row in rows if math.isfinite(row.value)] + ([rule[0]] if rule else []), default=1.0)
    least = min([0.0, *(row.value for row in rows if math.isfinite(row.value))])
    values = [
        {"name": row.name, "value": row.value if math.isfinite(row.value) else most, "shown": shown(row.value),
         "strong": row.is_strong}
        for row in rows
    ]  # fmt: skip
    colour = {"condition": {"test": "datum.strong", "value": theme.orange}, "value": theme.blue}
    scale = {"domain": [1.1 * least, 1.25 * (most or 1.0)], "nice": False}
    text = {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "fill": theme.ink}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "bar", "height": 16}, "encoding": {"color": colour}},
        {"mark": text, "encoding": {"text": {"field": "shown", "type": "nominal"}}},
    ]
    if rule is not None:
        where = {"values": [{"at": rule[0], "said": rule[1]}]}
        at = {"field": "at", "type": "quantitative", "scale": scale}
        line = {"type": "rule", "stroke": theme.ink, "strokeDash": [4, 3]}
        label = {"type": "text", "align": "left", "dx": 5, "y": -6, "fontSize": 11, "fill": theme.ink}
        layers.append({"data": where, "mark": line, "encoding": {"x": at, "y": None}})
        layers.append(
            {
                "data": where,
                "mark": label,
                "encoding": {"x": at, "y": None, "text": {"field": "said", "type": "nominal"}},
            }
        )
    return {
        "title": {**heading(*title), "offset": 18 if rule else 8},
        "width": SIZE,
        "height": ROW * len(rows),
        "data": {"values": values},
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "scale": scale,
                  "axis": {"title": None, "tickCount": 4, "grid": True}},
            "y": _names(names),
        },
        "layer": layers,
    }  # fmt: skip


def margins(title: tuple[str, str], rows: Sequence[Margin], theme: Theme) -> dict[str, Any]:
    """Draw each difference as a point beside the mark of what is allowed; logarithmic, with 0 at the left edge."""
    values = [
        {
            "name": row.name, "figure": place(row.figure), "bound": place(row.bound),
            "shown": f"{shown(row.figure)} of {shown(row.bound)}", "bad": not row.figure <= row.bound,
        }
        for row in rows
    ]  # fmt: skip
    scale = {"type": "log", "domain": [LEAST / 2, 1e4], "nice": False}
    axis = {
        "title": None,
        "values": [LEAST, 1e-12, 1e-6, 1.0],
        "labelExpr": f"datum.value < {10 * LEAST} ? '0' : datum.value == 1 ? '1' : format(datum.value, '.0e')",
    }
    x = {"type": "quantitative", "scale": scale, "axis": axis}
    colour = {"condition": {"test": "datum.bad", "value": theme.orange}, "value": theme.blue}
    return {
        "title": heading(*title),
        "width": SIZE,
        "height": 1.6 * ROW * len(rows),
        "data": {"values": values},
        "encoding": {"y": _names([row.name for row in rows])},
        "layer": [
            {"mark": {"type": "tick", "thickness": 2, "size": 14, "color": theme.ink},
             "encoding": {"x": {"field": "bound", **x}}},
            {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
             "encoding": {"x": {"field": "figure", **x}, "color": colour}},
            {"mark": {"type": "text", "align": "left", "dx": 0, "dy": -13, "fontSize": 11, "fill": theme.ink},
             "encoding": {"x": {"field": "figure", **x}, "text": {"field": "shown", "type": "nominal"}}},
        ],
    }  # fmt: skip


def _names(names: Sequence[str]) -> dict[str, Any]:
    axis = {"title": None, "ticks": False, "domain": False, "labelLimit": 220}
    return {"field": "name", "type": "nominal", "sort": list(names), "axis": axis}


def place(figure: float) -> float:
    """Return where a difference stands on the axis."""
    return min(max(figure, LEAST), 1e3) if math.isfinite(figure) else 1e3


def shown(value: float) -> str:
    """Write a number with three digits."""
    if not math.isfinite(value):
        return "not a number"
    return "0" if value == 0 else f"{value:.3g}".replace("-", "−")
