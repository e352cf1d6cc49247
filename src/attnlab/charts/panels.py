"""Small panels side by side: bars with their numbers, curves with places marked on them, and points of a plane."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .chart import SCHEMA, Spec
from .theme import FILE, SPACING, Theme, config

HEIGHT, WIDTH = 230, 280
BAR, LEAST_STEP = 34, 46
"""The room of one bar, and the least of one label below it."""
FAINT = "#A8A8A8"
"""What is drawn for comparison alone: a grey that shows on light and dark."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
AXIS = 45
"""What an axis and its title take beside a panel."""
PIXELS_PER_CHARACTER = 6.2
MOST_POWERS = 6
"""How many powers of ten can be named along an axis."""
HEADROOM = 0.09
"""The part of an axis above its highest bar or curve, so that numbers and words fit in."""

Layer = dict[str, Any]


@dataclass(frozen=True)
class Bars:
    """Groups of bars over the same labels: one number for each label in each group."""

    title: str
    labels: Sequence[str]
    groups: Mapping[str, Sequence[float]]
    axis: str = "weight"
    reach: tuple[float, float] = (0.0, 1.0)
    """What the axis shows at least."""
    strong: Sequence[str] = ()
    """Labels whose bars stand out."""


@dataclass(frozen=True)
class CurvePanel:
    """Lines over one axis. `marks` are places on it, each with words; a line named in `faint` is drawn in grey."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    across: str
    axis: str = "weight"
    marks: Mapping[str, float] = field(default_factory=dict)
    faint: Sequence[str] = ()
    is_logarithmic: bool = False


@dataclass(frozen=True)
class Points:
    """Named places in a plane, some of them `strong`, and outlines around groups of them."""

    title: str
    places: Mapping[str, tuple[float, float]]
    strong: Sequence[str] = ()
    outlines: Sequence[Sequence[tuple[float, float]]] = ()


Panel = Bars | CurvePanel | Points


def draw(panels: Sequence[Panel], title: str, sentence: str = "", theme: Theme = FILE) -> Spec:
    """Draw panels from left to right under one title, and a sentence that is broken where they end."""
    drawn = [_draw(panel, theme) for panel in panels]
    width = sum(panel["width"] for panel in drawn) + SPACING * (len(drawn) - 1) + AXIS * len(drawn)
    shared = config(theme)
    shared["legend"] |= {"columns": 1, "offset": 10, "symbolSize": 70}
    return {
        "$schema": SCHEMA,
        "title": {
            "text": title,
            "subtitle": textwrap.wrap(sentence, int(width / PIXELS_PER_CHARACTER)),
            "subtitleFontSize": 12,
            "subtitlePadding": 6,
        },
        "hconcat": drawn,
        "resolve": {part: {"color": "independent", "strokeDash": "independent"} for part in ("scale", "legend")},
        "config": shared,
    }


def _draw(panel: Panel, theme: Theme) -> Layer:
    heading = {"text": panel.title, "fontSize": 13, "fontWeight": "normal", "offset": 10}
    shared = {"title": heading, "height": HEIGHT}
    if isinstance(panel, Bars):
        return shared | _bars(panel, theme)
    return shared | (_curves(panel, theme) if isinstance(panel, CurvePanel) else _points(panel, theme))


def _bars(panel: Bars, theme: Theme) -> Layer:
    names = list(panel.groups)
    values = [
        {"label": label, "group": name, "height": height, "shown": _number(height)}
        for name, heights in panel.groups.items()
        for label, height in zip(panel.labels, heights, strict=True)
    ]
    heights = [height for group in panel.groups.values() for height in group]
    low, high = min([panel.reach[0], *heights]), max([panel.reach[1], *heights])
    air = (high - low) * HEADROOM
    domain = [low - air if low < 0 else low, high + air]
    colours = [theme.blue] if len(names) == 1 else [FAINT, theme.blue, theme.orange][: len(names)]
    colour = {"field": "group", "type": "nominal", "title": None, "scale": {"domain": names, "range": colours}}
    legend = {"symbolType": "square"} if len(names) > 1 else None
    emphasis = {"test": {"field": "label", "oneOf": list(panel.strong)}, "value": theme.orange}
    step = max(BAR * len(names), LEAST_STEP)
    return {
        "width": step * len(panel.labels),
        "data": {"values": values},
        "encoding": {
            "x": {
                "field": "label", "type": "nominal", "sort": list(panel.labels), "scale": {"paddingInner": 0.2},
                "axis": {"title": None, "labelAngle": 0, "ticks": False, "grid": False},
            },
            "xOffset": {"field": "group", "type": "nominal", "sort": names},
            "y": {
                "field": "height", "type": "quantitative", "scale": {"domain": domain, "nice": False},
                "axis": {"title": panel.axis, "tickCount": 5},
            },
        },
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {"color": {**colour, "legend": legend, "condition": [emphasis] if panel.strong else []}},
            },
            *(_numbers(sign, theme) for sign in (">=", "<")),
        ],
    }  # fmt: skip


def _numbers(sign: str, theme: Theme) -> Layer:
    """Write the numbers of bars on their outer side: above those that rise, below those that hang."""
    side = {"baseline": "bottom", "dy": -3} if sign == ">=" else {"baseline": "top", "dy": 3}
    return {
        "transform": [{"filter": f"datum.height {sign} 0"}],
        "mark": {"type": "text", "fontSize": 11, "fill": theme.ink, **side},
        "encoding": {"text": {"field": "shown", "type": "nominal"}},
    }


def _number(value: float) -> str:
    """Write a bar's number with three decimals, without a 0 in front: .356."""
    if value == 0:
        return "0"
    text = f"{abs(value):.3f}"
    return ("−" if value < 0 and float(text) else "") + (text[1:] if text.startswith("0.") else text)


def _curves(panel: CurvePanel, theme: Theme) -> Layer:
    names = list(panel.lines)
    values = [{"line": name, "x": x, "y": y} for name, places in panel.lines.items() for x, y in places]
    strong = [colour for colour in theme.colours if colour != theme.ink]
    bold = [name for name in names if name not in panel.faint]
    colours = [FAINT if name in panel.faint else strong[bold.index(name) % len(strong)] for name in names]
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    across = [x for places in panel.lines.values() for x, _ in places]
    start, end = min(across, default=0.0), max(across, default=1.0)
    ticks = {"values": _powers(start, end), "format": "~g"} if panel.is_logarithmic else {}
    told_apart = {"field": "line", "type": "nominal", "title": None, "sort": names}
    legend = {
        "symbolType": "stroke",
        "symbolSize": 400,
        "symbolStrokeWidth": 3,
        "columns": 3,
        "direction": "horizontal",
    }
    return {
        "width": WIDTH,
        "encoding": {
            "x": {
                "field": "x", "type": "quantitative",
                "axis": {"title": panel.across, "grid": False, "tickCount": 5, **ticks},
                "scale": {"domain": [start, end], "nice": False, "type": "log" if panel.is_logarithmic else "linear"},
            },
            "y": {
                "field": "y", "type": "quantitative", "axis": {"title": panel.axis, "tickCount": 5},
                "scale": {"domain": [0, 1 + HEADROOM], "nice": False},
            },
        },
        "layer": [
            *_marks(panel, start, end, theme),
            {
                "data": {"values": values},
                "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
                "encoding": {
                    "color": {**told_apart, "scale": {"domain": names, "range": colours}, "legend": legend},
                    "strokeDash": {**told_apart, "scale": {"domain": names, "range": dashes}, "legend": legend},
                },
            },
        ],
    }  # fmt: skip


def _powers(start: float, end: float) -> list[float]:
    """Return the powers of ten within a range."""
    first, last = math.ceil(math.log10(start) - 1e-9), math.floor(math.log10(end) + 1e-9)
    step = max(1, (last - first) // MOST_POWERS + 1)
    return [float(f"1e{power}") for power in range(first, last + 1, step)]


def _marks(panel: CurvePanel, start: float, end: float, theme: Theme) -> list[Layer]:
    """Draw upright lines at places of the axis, with their words at the top, where no curve runs."""
    layers: list[Layer] = []
    for words, place in panel.marks.items():
        middle = math.sqrt(start * end) if panel.is_logarithmic else (start + end) / 2
        side: Layer = {"align": "right", "dx": -5} if place > middle else {"align": "left", "dx": 5}
        data = {"values": [{"x": place}]}
        rule = {"type": "rule", "stroke": theme.ink, "strokeWidth": 1}
        text = {"type": "text", "text": words, "fontSize": 11, "fill": theme.ink, "y": 7, **side}
        layers += [{"data": data, "mark": mark, "encoding": {"y": None}} for mark in (rule, text)]
    return layers


def _points(panel: Points, theme: Theme) -> Layer:
    values = [
        {"name": name, "x": x, "y": y, "is_strong": name in panel.strong} for name, (x, y) in panel.places.items()
    ]
    axes = {
        axis: {
            "field": axis, "type": "quantitative", "scale": {"zero": False, "padding": 26},
            "axis": {"title": None, "labels": False, "ticks": False, "grid": False, "domain": False},
        }
        for axis in ("x", "y")
    }  # fmt: skip
    colour = {"condition": {"test": "datum.is_strong", "value": theme.orange}, "value": theme.blue}
    return {
        "width": WIDTH,
        "encoding": axes,
        "layer": [
            *(_outline(corners, theme) for corners in panel.outlines),
            {"data": {"values": values}, "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
             "encoding": {"color": colour}},
            {"data": {"values": values}, "mark": {"type": "text", "dy": -13, "fontSize": 12, "fill": theme.ink},
             "encoding": {"text": {"field": "name"}}},
        ],
    }  # fmt: skip


def _outline(corners: Sequence[tuple[float, float]], theme: Theme) -> Layer:
    closed = [*corners, *corners[:1]]
    return {
        "data": {"values": [{"x": x, "y": y, "order": order} for order, (x, y) in enumerate(closed)]},
        "mark": {"type": "line", "stroke": FAINT, "fill": theme.ground, "fillOpacity": 0.7, "strokeWidth": 1.5},
        "encoding": {"order": {"field": "order", "type": "quantitative"}},
    }
