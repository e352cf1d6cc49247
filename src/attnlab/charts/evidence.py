"""Numbers of an audit as panels: bars with their figures, and differences against their bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .theme import Layer, Theme, layer, nominal, quantitative

SIZE = 300
ROW = 26
LEAST = 1e-17
"""The place of 0 on the axis of differences, which is logarithmic."""


@dataclass(frozen=True)
class Bar:
    """A named number; a strong one is emphasised."""

    name: str
    value: float
    is_strong: bool = False


@dataclass(frozen=True)
class Margin:
    """A measured difference and its bound."""

    name: str
    figure: float
    bound: float


def make_panel(title: tuple[str, str], height: float = SIZE, offset: int = 8, **parts: Any) -> Layer:
    """Return a panel with its title and subtitle."""
    heading = {"text": title[0], "subtitle": title[1], "fontSize": 13, "offset": offset}
    return {"title": heading, "width": SIZE, "height": height, **parts}


def bars(title: tuple[str, str], rows: Sequence[Bar], theme: Theme, rule: tuple[float, str] | None = None) -> Layer:
    """Draw horizontal bars with their figures, and a named line at a number."""
    finite = [row.value for row in rows if math.isfinite(row.value)]
    most = max([*map(abs, finite), *([rule[0]] if rule else [])], default=1.0)
    values = [
        {
            "name": row.name, "value": row.value if math.isfinite(row.value) else most, "shown": show_number(row.value),
            "strong": row.is_strong,
        }
        for row in rows
    ]  # fmt: skip
    colour = {"condition": {"test": "datum.strong", "value": theme.orange}, "value": theme.blue}
    scale = {"domain": [1.1 * min([0.0, *finite]), 1.25 * (most or 1.0)], "nice": False}
    text = {"align": "left", "dx": 5, "fontSize": 11, "fill": theme.ink}
    layers: list[Layer] = [
        {"mark": {"type": "bar", "height": 16}, "encoding": {"color": colour}},
        {"mark": {"type": "text", **text}, "encoding": {"text": nominal("shown")}},
    ]
    if rule is not None:
        place = [{"at": rule[0], "name": rule[1]}]
        at = {"x": quantitative("at", scale=scale), "y": None}
        layers.append(layer(place, "rule", at, stroke=theme.ink, strokeDash=[4, 3]))
        layers.append(layer(place, "text", {**at, "text": nominal("name")}, **text, y=-6))
    x = quantitative("value", scale=scale, axis={"title": None, "tickCount": 4, "grid": True})
    encoding = {"x": x, "y": _names([row.name for row in rows])}
    offset = 18 if rule else 8
    return make_panel(title, ROW * len(rows), offset, data={"values": values}, encoding=encoding, layer=layers)


def margins(title: tuple[str, str], rows: Sequence[Margin], theme: Theme) -> Layer:
    """Draw each difference as a point beside a mark at its bound; logarithmic, with 0 at the left edge."""
    values = [
        {
            "name": row.name, "figure": find_place(row.figure), "bound": find_place(row.bound),
            "shown": f"{show_number(row.figure)} of {show_number(row.bound)}", "bad": not row.figure <= row.bound,
        }
        for row in rows
    ]  # fmt: skip
    labels = f"datum.value < {10 * LEAST} ? '0' : datum.value == 1 ? '1' : format(datum.value, '.0e')"
    axis = {"title": None, "values": [LEAST, 1e-12, 1e-6, 1.0], "labelExpr": labels}
    scale = {"type": "log", "domain": [LEAST / 2, 1e4], "nice": False}
    bound, figure = (quantitative(name, scale=scale, axis=axis) for name in ("bound", "figure"))
    colour = {"condition": {"test": "datum.bad", "value": theme.orange}, "value": theme.blue}
    tick = {"type": "tick", "thickness": 2, "size": 14, "color": theme.ink}
    point = {"type": "point", "filled": True, "size": 90, "opacity": 1}
    text = {"type": "text", "align": "left", "dx": 0, "dy": -13, "fontSize": 11, "fill": theme.ink}
    layers = [
        {"mark": tick, "encoding": {"x": bound}},
        {"mark": point, "encoding": {"x": figure, "color": colour}},
        {"mark": text, "encoding": {"x": figure, "text": nominal("shown")}},
    ]
    encoding = {"y": _names([row.name for row in rows])}
    return make_panel(title, 1.6 * ROW * len(rows), data={"values": values}, encoding=encoding, layer=layers)


def _names(names: Sequence[str]) -> Layer:
    return nominal("name", sort=names, axis={"title": None, "ticks": False, "domain": False, "labelLimit": 220})


def find_place(figure: float) -> float:
    """Return the place of a difference on the axis."""
    return min(max(figure, LEAST), 1e3) if math.isfinite(figure) else 1e3


def show_number(value: float) -> str:
    """Write a number with three digits."""
    if not math.isfinite(value):
        return "not a number"
    return "0" if value == 0 else f"{value:.3g}".replace("-", "−")
