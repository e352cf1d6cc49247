"""A histogram over a logarithmic axis, with quantiles marked above the bars."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from .axis import Axis
from .chart import Spec
from .theme import FILE, Layer, Theme, frame, layer, quantitative

WIDTH, HEIGHT = 560, 260
APART = 0.07
"""The share of the axis that the words of two marks need between them; closer ones get different heights."""
LINE = 14


def draw(
    edges: Sequence[float], counts: Sequence[int], titles: tuple[str, str, str, str],
    marks: Mapping[str, float] | None = None, theme: Theme = FILE,
) -> Spec:  # fmt: skip
    """Draw a bar between each edge and the next.

    titles: of the chart, its subtitle, the horizontal and the vertical axis. marks: words and their places.
    """
    title, subtitle, across, up = titles
    bars = [
        {"from": low, "to": high, "count": count}
        for (low, high), count in zip(pairwise(edges), counts, strict=True)
        if count
    ]
    axis = Axis(edges[0], edges[-1], is_logarithmic=True)
    labels = {"title": across, "values": axis.ticks(), "format": ",d", "grid": False}
    encoding: Layer = {
        "x": quantitative("from", scale=axis.scale, axis=labels),
        "x2": {"field": "to"},
        "y": quantitative("count", axis={"title": up, "tickCount": 5}),
        "y2": {"datum": 0},
        "tooltip": [quantitative(name) for name in ("from", "to", "count")],
    }
    layers = [
        layer(bars, "rect", encoding, fill=theme.blue, stroke=theme.background, strokeWidth=1),
        *_marks(marks or {}, axis, encoding["x"], theme),
    ]
    return frame(title, subtitle, theme, width=WIDTH, height=HEIGHT, layer=layers)


def _marks(marks: Mapping[str, float], axis: Axis, x: Layer, theme: Theme) -> list[Layer]:
    rows = choose_rows(marks, axis)
    line: Layer = {"stroke": theme.orange, "strokeWidth": 1.5, "strokeDash": [4, 3], "y": 0, "y2": "height"}
    layers: list[Layer] = []
    for name, place in marks.items():
        at = {"x": {**x, "field": "at"}}
        text: Layer = {"text": f"{name} {place:,.0f}", "fontSize": 11, "fill": theme.ink, "y": -8 - LINE * rows[name]}
        layers += [layer([{"at": place}], "rule", at, **line), layer([{"at": place}], "text", at, **text)]
    return layers


def choose_rows(marks: Mapping[str, float], axis: Axis) -> dict[str, int]:
    """Give each mark's words the lowest row in which they do not overlap others."""
    last: dict[int, float] = {}
    rows = {}
    for name, place in sorted(marks.items(), key=lambda item: item[1]):
        share = axis.share(place)
        room = APART * (1 + len(name) / 12)
        row = next(row for row in range(len(marks) + 1) if row not in last or share - last[row] > 2 * room)
        rows[name] = row
        last[row] = share
    return rows
