"""Time and memory against length, both axes logarithmic; thin guides show growth with n and n²."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .axis import Axis
from .chart import Spec
from .theme import FILE, SPACING, Layer, Theme, frame, layer, nominal, quantitative

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [5, 4], [1, 3])

PANELS = {"milliseconds": "time, ms", "megabytes": "peak extra memory, MB"}
"""The costs that can be drawn against the length, and the titles of their axes."""

WIDTH, HEIGHT = 340, 300
GUIDES = {"n": 1, "n²": 2}
"""The guides of every panel, and their powers of the length."""

PIXELS_PER_CHARACTER = 6.5
SYMBOL_WIDTH = 36
"""The width of a legend's entry without its label: its symbol and the space around both."""


@dataclass(frozen=True)
class GrowthPoint:
    """The cost of one line at one length. `kind` distinguishes lines of one name by their dashes."""

    name: str
    kind: str
    length: int
    seconds: float
    memory: int


def draw(
    points: Sequence[GrowthPoint], title: str, subtitle: str | Sequence[str] = "",
    fields: Sequence[str] = tuple(PANELS), theme: Theme = FILE,
) -> Spec:  # fmt: skip
    """Draw a panel of time and a panel of memory, or one of them, with a line for each name and kind."""
    values = [
        {
            "name": point.name, "kind": point.kind, "length": point.length,
            "milliseconds": point.seconds * 1e3, "megabytes": point.memory / 1e6,
        }
        for point in points
    ]  # fmt: skip
    panels = [_panel(values, field, len(fields), theme) for field in fields]
    return frame(title, subtitle, theme, data={"values": values}, hconcat=panels)


def _panel(values: list[Layer], field: str, num_panels: int, theme: Theme) -> Layer:
    label, lengths = PANELS[field], [value["length"] for value in values]
    axis = Axis.fit([value[field] for value in values if value[field] > 0], is_logarithmic=True)
    legend = _legend([value["name"] for value in values], num_panels)
    tooltip = [nominal("name", title="line"), nominal("kind", title="computed by")]
    tooltip += [quantitative("length", title="length, tokens"), quantitative(field, title=label, format=".3~r")]
    shared = {"color": {**_marks(values, "name", theme.colours), "legend": legend}, "tooltip": tooltip}
    shape = {**_marks(values, "name", SHAPES), "legend": legend}
    line, point = {"type": "line", "strokeWidth": 2}, {"type": "point", "size": 45, "filled": True, "opacity": 1}
    return {
        "width": WIDTH,
        "height": HEIGHT,
        # A logarithmic axis has no place for 0, the memory of a step that allocates nothing.
        "transform": [{"filter": f"datum.{field} > 0"}],
        "encoding": {"x": encode_length(lengths), "y": axis.encode_up(field, label)},
        "layer": [
            *draw_guides(GUIDES, lengths, field, axis, theme),
            {"mark": line, "encoding": {**shared, "strokeDash": _dashes(values)}},
            {"mark": point, "encoding": {**shared, "shape": shape}},
        ],
    }


def draw_guides(
    guides: Mapping[str, float], lengths: Sequence[int], field: str, axis: Axis, theme: Theme
) -> list[Layer]:
    """Draw powers of the length from the lower left corner to the longest length or the upper edge."""
    if len(set(lengths)) < 2:
        return []
    shortest, longest = min(lengths), max(lengths)
    layers: list[Layer] = []
    for name, power in guides.items():
        end = min(longest, shortest * (axis.high / axis.low) ** (1 / power))
        ends = [{"length": length, field: axis.low * (length / shortest) ** power} for length in (shortest, end)]
        text: Layer = {"text": name, "align": "right", "baseline": "top", "dx": -6, "fill": theme.ink, "opacity": 0.7}
        layers.append(layer(ends, "line", stroke=theme.ink, strokeWidth=1, opacity=0.4))
        layers.append(layer(ends[1:], "text", **text))
    return layers


def _legend(names: list[str], num_panels: int) -> Layer:
    """Arrange the labels in two columns, or in one if they are long, within the width of the plots."""
    width = num_panels * WIDTH + (num_panels - 1) * SPACING
    longest = max((len(name) for name in names), default=0) * PIXELS_PER_CHARACTER + SYMBOL_WIDTH
    columns = 2 if 2 * longest <= width else 1
    return {"columns": columns, "labelLimit": width // columns - SYMBOL_WIDTH}


def encode_length(lengths: Sequence[int]) -> Layer:
    """Return the encoding of lengths on a logarithmic axis, with a margin on both sides."""
    domain = [min(lengths) / 1.15, max(lengths) * 1.15] if lengths else [1, 2]
    scale = {"type": "log", "base": 2, "domain": domain, "nice": False}
    axis = {"values": sorted(set(lengths)), "format": "d", "title": "length, tokens"}
    return quantitative("length", scale=scale, axis=axis)


def _marks(values: list[Layer], field: str, marks: Sequence[Any]) -> Layer:
    """Give each name a mark, starting again if there are more names than marks.

    There is one colour more than there are shapes, so that no pair of both repeats within their product.
    """
    names = list(dict.fromkeys(value[field] for value in values))
    chosen = [marks[number % len(marks)] for number in range(len(names))]
    return nominal(field, title=None, scale={"domain": names, "range": chosen})


def _dashes(values: list[Layer]) -> Layer:
    dashes = _marks(values, "kind", DASHES)
    is_needed = len(dashes["scale"]["domain"]) > 1
    stroke = {"symbolType": "stroke", "symbolSize": 500, "clipHeight": 16, "columns": 1}
    return {**dashes, "legend": stroke if is_needed else None}
