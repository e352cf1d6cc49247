"""The weights of every head of a model on one text: one head large, with its tokens, and all heads small, a row for
each layer. All share one scale, so that heads can be compared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .axis import look_up
from .chart import Chart
from .raster import Weights, encode_png, paint
from .theme import FILE, SPACING, Layer, frame, layer, quantitative

COLOURS = (FILE.orange, FILE.blue, FILE.ground, FILE.background)
DENSITY = 2
"""Pixels of an image for each unit of the chart."""
GRID, SMALLEST, LARGEST, GAP = 660, 36, 110, 6
"""The side of the grid that is aimed at, the bounds of the side of a small map, and the space between two."""
TOKEN_SIDE = 13
"""The least side of a token that is named: its label is 11 high."""
MAX_MARKS = 64
"""The most tokens whose weights are marks, with their numbers on hover; more are an image."""
MAX_CHARACTERS = 16
CONTINUING = "A token that begins with a hyphen, such as -ing, continues the word before it."
WIDTH = 1000
"""The width from which the two parts are below each other."""


@dataclass(frozen=True)
class HeadGrid:
    """Weights [layers heads queries keys], the names of queries and keys, and the head that is shown large.

    layers: the numbers of the layers, by default 0, 1, …; `layer` is one of them.
    """

    weights: Weights
    queries: Sequence[str]
    keys: Sequence[str]
    layer: int
    head: int
    layers: Sequence[int] = ()

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the layers."""
        return self.layers or range(len(self.weights))

    @property
    def row(self) -> int:
        """The place of the head's layer among the layers."""
        return self.numbers.index(self.layer)

    @property
    def is_causal(self) -> bool:
        """Whether no query has a weight on a later key."""
        num_queries, num_keys = self.weights.shape[2:]
        return not self.weights[..., ~np.tri(num_queries, num_keys, k=num_keys - num_queries, dtype=bool)].any()

    @property
    def most(self) -> float:
        """The weight with the darkest colour: the largest, or 1 if every row sums to 1 (even weights look pale)."""
        if (self.weights >= 0).all() and np.allclose(self.weights.sum(-1), 1, atol=1e-3):
            return 1.0
        return float(np.abs(self.weights).max()) or 1.0


def draw(grid: HeadGrid, title: str, subtitle: Sequence[str] = ()) -> Chart:
    """Draw one head large and all heads small, side by side if there is room."""
    parts = [_draw_head(grid), _draw_grid(grid)]
    is_wide = sum(part["width"] for part in parts) + 180 > WIDTH
    spec = frame(title, subtitle, FILE, concat=parts, columns=1 if is_wide else 2)
    spec["align"], spec["spacing"] = "none", SPACING
    spec["config"]["title"] |= {"subtitleFontSize": 12, "subtitlePadding": 6}
    return spec


def _draw_head(grid: HeadGrid) -> Layer:
    num_queries, num_keys = len(grid.queries), len(grid.keys)
    longest = max(num_queries, num_keys)
    side = max(TOKEN_SIDE, min(40, 300 // longest)) if longest <= MAX_MARKS else max(3, 800 // longest)
    weights = grid.weights[grid.row, grid.head]
    width, height = side * num_keys, side * num_queries
    encoding = {
        "x": name_tokens("key", grid.keys, side), "x2": {"field": "right"},
        "y": name_tokens("query", grid.queries, side), "y2": {"field": "below"},
    }  # fmt: skip
    if longest <= MAX_MARKS:
        layers = [{**part, "encoding": encoding | part["encoding"]} for part in _mark_weights(grid, weights)]
    else:
        # The image is square; Vega stretches it to the shape of the view.
        pixels = paint(weights, DENSITY * longest * side, grid.most, COLOURS, grid.is_causal)
        corner = [{"query": 0, "below": 0, "key": 0, "right": 0}]  # nothing to see: it carries the axes
        layers = [place_image(encode_png(pixels), width, height), layer(corner, "rect", encoding, opacity=0)]
    title = {"text": f"Layer {grid.layer}, head {grid.head}", "subtitle": "a row: what one token attends to"}
    return {
        "title": title | {"fontSize": 13, "subtitleFontSize": 12, "offset": 8},
        "width": width, "height": height, "layer": layers,
    }  # fmt: skip


def _mark_weights(grid: HeadGrid, weights: Weights) -> list[Layer]:
    num_queries, num_keys = weights.shape
    extra = num_keys - num_queries
    ground = [
        {"query": i, "below": i + 1, "key": 0, "right": i + 1 + extra if grid.is_causal else num_keys}
        for i in range(num_queries)
    ]
    cells = [
        {
            "query": i, "below": i + 1, "key": j, "right": j + 1, "from": grid.queries[i], "to": grid.keys[j],
            "weight": round(float(weights[i, j]), 4), "strength": round(math.sqrt(abs(weights[i, j]) / grid.most), 3),
        }
        for i, j in np.argwhere(np.abs(weights) > 1e-4).tolist()
    ]  # fmt: skip
    colour = {"condition": {"test": "datum.weight < 0", "value": FILE.blue}, "value": FILE.orange}
    tooltip = [{"field": "from", "type": "nominal"}, {"field": "to", "type": "nominal"}, quantitative("weight")]
    opacity = quantitative("strength", scale=None)
    fill = {"fill": colour, "fillOpacity": opacity, "tooltip": tooltip}
    return [layer(ground, "rect", fill=FILE.ground, aria=False), layer(cells, "rect", fill, aria=False)]


def name_tokens(field: str, tokens: Sequence[str], side: int) -> Layer:
    """Name the tokens at the middle of their rows or columns; where they are too many, every second, third, …"""
    step = math.ceil(TOKEN_SIDE / side)
    names = [shorten(token) for token in tokens]
    is_across = field == "key"
    axis = {
        "orient": "top" if is_across else "left", "values": [i + 0.5 for i in range(0, len(tokens), step)],
        "labelExpr": look_up(names), "labelFontSize": 11, "labelLimit": 0,
        "labelPadding": 4, "labelOverlap": False, "ticks": False, "domain": False, "grid": False, "title": field,
        **({"labelAngle": -90, "labelAlign": "left", "labelBaseline": "middle"} if is_across else {}),
    }  # fmt: skip
    return quantitative(field, scale={"domain": [0, len(tokens)], "nice": False, "reverse": not is_across}, axis=axis)


def is_continuing(name: str) -> bool:
    """Tell whether the name of a token marks it as a piece that continues a word."""
    return len(name) > 1 and name.startswith("-")


def shorten(token: str) -> str:
    """Cut a long token in its middle, since pieces of words differ most at their ends."""
    if len(token) <= MAX_CHARACTERS:
        return token
    return f"{token[: MAX_CHARACTERS // 2]}…{token[-(MAX_CHARACTERS // 2 - 1) :]}"


def _draw_grid(grid: HeadGrid) -> Layer:
    num_layers, num_heads = grid.weights.shape[:2]
    side = max(SMALLEST, min(LARGEST, GRID // max(num_layers, num_heads) - GAP))
    pitch = side + GAP
    width, height = pitch * num_heads, pitch * num_layers
    pixels = np.full((DENSITY * height, DENSITY * width, 3), 255, dtype=np.uint8)
    for row in range(num_layers):
        for column in range(num_heads):
            top, left = (DENSITY * (pitch * place + GAP // 2) for place in (row, column))
            painted = paint(grid.weights[row, column], DENSITY * side, grid.most, COLOURS, grid.is_causal)
            pixels[top : top + len(painted), left : left + len(painted)] = painted
    chosen = [{"x": grid.head, "x2": grid.head + 1, "y": grid.row, "y2": grid.row + 1}]
    places = {
        "x": number_axis("x", range(num_heads)), "x2": {"field": "x2"},
        "y": number_axis("y", grid.numbers), "y2": {"field": "y2"},
    }  # fmt: skip
    outline = layer(chosen, "rect", places, fill=None, stroke=FILE.ink, strokeWidth=2)
    signs = "; blue: negative weights" if (grid.weights < 0).any() else ""
    title = {"text": "Every head", "subtitle": f"darkest colour: a weight of {grid.most:.3g}{signs}"}
    return {
        "title": title | {"fontSize": 13, "subtitleFontSize": 12, "offset": 8},
        "width": width, "height": height, "layer": [place_image(encode_png(pixels), width, height), outline],
    }  # fmt: skip


def place_image(url: str, width: int, height: int) -> Layer:
    """Return a layer with an image that fills a view."""
    mark = {"url": url, "width": width, "height": height, "align": "left", "baseline": "top", "aspect": False}
    return layer([{}], "image", {"x": {"value": 0}, "y": {"value": 0}}, **mark)


def number_axis(field: str, numbers: Sequence[int]) -> Layer:
    """Name heads across (x) or layers down (y) by their numbers."""
    is_across, count = field == "x", len(numbers)
    axis = {
        "orient": "top" if is_across else "left", "title": "head" if is_across else "layer", "labelFontSize": 11,
        "values": [place + 0.5 for place in range(count)], "labelExpr": look_up([str(number) for number in numbers]),
        "labelOverlap": False,
        "ticks": False, "domain": False, "grid": False,
    }  # fmt: skip
    return quantitative(field, scale={"domain": [0, count], "nice": False, "reverse": not is_across}, axis=axis)
