"""Small panels side by side: bars with their numbers, curves with marked places, and points in a plane."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .chart import Spec
from .theme import DASHES, FILE, SPACING, Layer, Theme, frame, layer, nominal, quantitative

HEIGHT, WIDTH = 230, 280
BAR, LEAST_STEP = 34, 46
"""The width of one bar, and the least width of one label below it."""
FAINT = "#A8A8A8"
"""The colour of what is drawn only for comparison: a grey that is visible on light and dark."""
AXIS = 45
"""The width of an axis and its title beside a panel."""
PIXELS_PER_CHARACTER = 6.2
MAX_POWERS = 6
"""The most powers of ten that can be named along an axis."""
HEADROOM = 0.09
"""The share of an axis above its highest bar or curve, for numbers and words."""


@dataclass(frozen=True)
class Bars:
    """Groups of bars over the same labels: one number for each label in each group.

    reach: what the axis shows at least. strong: labels whose bars are emphasised.
    """

    title: str
    labels: Sequence[str]
    groups: Mapping[str, Sequence[float]]
    axis: str = "weight"
    reach: tuple[float, float] = (0.0, 1.0)
    strong: Sequence[str] = ()


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
    """Draw panels from left to right under one title, and a sentence wrapped to their width."""
    drawn = [_draw(panel, theme) for panel in panels]
    width = sum(panel["width"] for panel in drawn) + SPACING * (len(drawn) - 1) + AXIS * len(drawn)
    resolve = {part: {"color": "independent", "strokeDash": "independent"} for part in ("scale", "legend")}
    lines = textwrap.wrap(sentence, int(width / PIXELS_PER_CHARACTER))
    spec = frame(title, lines, theme, hconcat=drawn, resolve=resolve)
    spec["title"] |= {"subtitleFontSize": 12, "subtitlePadding": 6}
    spec["config"]["legend"] |= {"columns": 1, "offset": 10, "symbolSize": 70}
    return spec


def _draw(panel: Panel, theme: Theme) -> Layer:
    title = {"text": panel.title, "fontSize": 13, "fontWeight": "normal", "offset": 10}
    if isinstance(panel, Bars):
        parts = _bars(panel, theme)
    else:
        parts = _curves(panel, theme) if isinstance(panel, CurvePanel) else _points(panel, theme)
    return {"title": title, "height": HEIGHT, **parts}


def _bars(panel: Bars, theme: Theme) -> Layer:
    names = list(panel.groups)
    values = [
        {"label": label, "group": name, "height": height, "shown": _show_number(height)}
        for name, heights in panel.groups.items()
        for label, height in zip(panel.labels, heights, strict=True)
    ]
    heights = [height for group in panel.groups.values() for height in group]
    low, high = min([panel.reach[0], *heights]), max([panel.reach[1], *heights])
    margin = (high - low) * HEADROOM
    domain = [low - margin if low < 0 else low, high + margin]
    colours = [theme.blue] if len(names) == 1 else [FAINT, theme.blue, theme.orange][: len(names)]
    emphasis = {"test": {"field": "label", "oneOf": list(panel.strong)}, "value": theme.orange}
    colour = nominal(
        "group", title=None, scale={"domain": names, "range": colours},
        legend={"symbolType": "square"} if len(names) > 1 else None, condition=[emphasis] if panel.strong else [],
    )  # fmt: skip
    labels = {"title": None, "labelAngle": 0, "ticks": False, "grid": False}
    y_axis = {"title": panel.axis, "tickCount": 5}
    return {
        "width": max(BAR * len(names), LEAST_STEP) * len(panel.labels),
        "data": {"values": values},
        "encoding": {
            "x": nominal("label", sort=list(panel.labels), scale={"paddingInner": 0.2}, axis=labels),
            "xOffset": nominal("group", sort=names),
            "y": quantitative("height", scale={"domain": domain, "nice": False}, axis=y_axis),
        },
        "layer": [
            {"mark": {"type": "bar"}, "encoding": {"color": colour}},
            *(_numbers(sign, theme) for sign in (">=", "<")),
        ],
    }


def _numbers(sign: str, theme: Theme) -> Layer:
    """Write the numbers of bars at their outer ends: above positive bars, below negative ones."""
    side = {"baseline": "bottom", "dy": -3} if sign == ">=" else {"baseline": "top", "dy": 3}
    return {
        "transform": [{"filter": f"datum.height {sign} 0"}],
        "mark": {"type": "text", "fontSize": 11, "fill": theme.ink, **side},
        "encoding": {"text": nominal("shown")},
    }


def _show_number(value: float) -> str:
    """Write a bar's number with three decimals, without a 0 in front: .356."""
    if value == 0:
        return "0"
    text = f"{abs(value):.3f}"
    return ("−" if value < 0 and float(text) else "") + (text[1:] if text.startswith("0.") else text)


def _curves(panel: CurvePanel, theme: Theme) -> Layer:
    names = list(panel.lines)
    values: list[Layer] = [{"line": name, "x": x, "y": y} for name, places in panel.lines.items() for x, y in places]
    strong = [colour for colour in theme.colours if colour != theme.ink]
    bold = [name for name in names if name not in panel.faint]
    colours = [FAINT if name in panel.faint else strong[bold.index(name) % len(strong)] for name in names]
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    start, end = min((row["x"] for row in values), default=0.0), max((row["x"] for row in values), default=1.0)
    ticks = {"values": _powers(start, end), "format": "~g"} if panel.is_logarithmic else {}
    stroke = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 3}
    legend = {**stroke, "columns": 3, "direction": "horizontal"}
    colour, dash = (
        nominal("line", title=None, sort=names, scale={"domain": names, "range": marks}, legend=legend)
        for marks in (colours, dashes)
    )
    scale = {"domain": [start, end], "nice": False, "type": "log" if panel.is_logarithmic else "linear"}
    x = quantitative("x", scale=scale, axis={"title": panel.across, "grid": False, "tickCount": 5, **ticks})
    y_axis = {"title": panel.axis, "tickCount": 5}
    y = quantitative("y", scale={"domain": [0, 1 + HEADROOM], "nice": False}, axis=y_axis)
    lines = layer(values, "line", {"color": colour, "strokeDash": dash}, strokeWidth=2.5, clip=True)
    return {"width": WIDTH, "encoding": {"x": x, "y": y}, "layer": [*_marks(panel, start, end, theme), lines]}


def _powers(start: float, end: float) -> list[float]:
    """Return the powers of ten within a range."""
    first, last = math.ceil(math.log10(start) - 1e-9), math.floor(math.log10(end) + 1e-9)
    step = max(1, (last - first) // MAX_POWERS + 1)
    return [float(f"1e{power}") for power in range(first, last + 1, step)]


def _marks(panel: CurvePanel, start: float, end: float, theme: Theme) -> list[Layer]:
    """Draw vertical lines at places of the axis, with their words at the top, above the curves."""
    layers: list[Layer] = []
    middle = math.sqrt(start * end) if panel.is_logarithmic else (start + end) / 2
    for words, place in panel.marks.items():
        side: Layer = {"align": "right", "dx": -5} if place > middle else {"align": "left", "dx": 5}
        text: Layer = {"text": words, "fontSize": 11, "fill": theme.ink, "y": 7, **side}
        layers.append(layer([{"x": place}], "rule", {"y": None}, stroke=theme.ink, strokeWidth=1))
        layers.append(layer([{"x": place}], "text", {"y": None}, **text))
    return layers


def _points(panel: Points, theme: Theme) -> Layer:
    values = [
        {"name": name, "x": x, "y": y, "is_strong": name in panel.strong} for name, (x, y) in panel.places.items()
    ]
    hidden = {"title": None, "labels": False, "ticks": False, "grid": False, "domain": False}
    x, y = (quantitative(name, scale={"zero": False, "padding": 26}, axis=hidden) for name in "xy")
    colour = {"condition": {"test": "datum.is_strong", "value": theme.orange}, "value": theme.blue}
    layers = [
        *(_outline(corners, theme) for corners in panel.outlines),
        layer(values, "point", {"color": colour}, filled=True, size=90, opacity=1),
        layer(values, "text", {"text": {"field": "name"}}, dy=-13, fontSize=12, fill=theme.ink),
    ]
    return {"width": WIDTH, "encoding": {"x": x, "y": y}, "layer": layers}


def _outline(corners: Sequence[tuple[float, float]], theme: Theme) -> Layer:
    rows = [{"x": x, "y": y, "order": order} for order, (x, y) in enumerate([*corners, *corners[:1]])]
    area: Layer = {"fill": theme.ground, "fillOpacity": 0.7, "stroke": FAINT, "strokeWidth": 1.5}
    return layer(rows, "line", {"order": quantitative("order")}, **area)
