"""The attention of several models on one text: the same head of each side by side, or all heads of each as small maps.

Weights are images that let the ground through, so that a page shows them on light and dark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .chart import Spec
from .head_grid import DENSITY, GAP, TOKEN_SIDE, name_tokens, number_axis, place_image
from .raster import Weights, encode_png, tint
from .theme import FILE, Layer, Theme, frame, layer

COLUMNS = 3
"""Models side by side."""
GRID, SMALLEST, LARGEST = 300, 26, 84
"""The width of all heads of a model that is aimed at, and the bounds of the side of one."""
COLOURS = (FILE.orange, FILE.blue)


@dataclass(frozen=True)
class ArmMaps:
    """The weights of one model, [layers heads queries keys], the numbers of its layers, and the names of its tokens."""

    name: str
    weights: Weights
    layers: Sequence[int]
    queries: Sequence[str]
    keys: Sequence[str]

    @property
    def most(self) -> float:
        """The weight with the full colour: the largest, or 1 if rows sum to 1 (nearly: stored ones are rounded)."""
        if (self.weights >= 0).all() and np.allclose(self.weights.sum(-1), 1, atol=0.2):
            return 1.0
        return float(np.abs(self.weights).max()) or 1.0

    def has(self, place: tuple[int, int]) -> bool:
        """Tell whether the model has a head: the numbers of its layer and of the head."""
        return place[0] in self.layers and place[1] < self.weights.shape[1]

    @property
    def scale(self) -> str:
        """What the colours mean."""
        return f"full colour: a weight of {self.most:.3g}" + ("; blue: negative" if (self.weights < 0).any() else "")


def draw_head(maps: Sequence[ArmMaps], place: tuple[int, int], title: str, subtitle: str, theme: Theme = FILE) -> Spec:
    """Draw one head of every model that has it. place: the numbers of its layer and of the head."""
    return _frame([_draw_map(one, place, theme) for one in maps if one.has(place)], title, subtitle, theme)


def draw_heads(maps: Sequence[ArmMaps], title: str, subtitle: str, theme: Theme = FILE) -> Spec:
    """Draw all heads of every model, a row for each layer."""
    return _frame([_draw_grid(one, theme) for one in maps], title, subtitle, theme)


def _frame(panels: list[Layer], title: str, subtitle: str, theme: Theme) -> Spec:
    return frame(title, subtitle, theme, concat=panels, columns=COLUMNS, spacing=24, align="none")


def _title(one: ArmMaps) -> Layer:
    return {"text": one.name, "subtitle": one.scale, "fontSize": 13, "subtitleFontSize": 12, "offset": 8}


def _draw_map(one: ArmMaps, place: tuple[int, int], theme: Theme) -> Layer:
    weights = one.weights[one.layers.index(place[0]), place[1]]
    width, height = (TOKEN_SIDE * len(names) for names in (one.keys, one.queries))
    pixels = tint(weights, DENSITY * max(width, height), one.most, COLOURS)
    axes = {"x": name_tokens("key", one.keys, TOKEN_SIDE), "y": name_tokens("query", one.queries, TOKEN_SIDE)}
    ground = {
        "x2": {"datum": len(one.keys)}, "y2": {"datum": len(one.queries)},
        "x": {**axes["x"], "field": "key"}, "y": {**axes["y"], "field": "query"},
    }  # fmt: skip
    below = layer([{"key": 0, "query": 0}], "rect", ground, fill=theme.ground, aria=False)
    return {
        "title": _title(one), "width": width, "height": height,
        "layer": [below, place_image(encode_png(pixels), width, height)],
    }  # fmt: skip


def _draw_grid(one: ArmMaps, theme: Theme) -> Layer:
    num_layers, num_heads = one.weights.shape[:2]
    side = max(SMALLEST, min(LARGEST, GRID // num_heads - GAP))
    pitch = side + GAP
    width, height = pitch * num_heads, pitch * num_layers
    pixels = np.zeros((DENSITY * height, DENSITY * width, 4), dtype=np.uint8)
    for row in range(num_layers):
        for column in range(num_heads):
            top, left = (DENSITY * (pitch * place + GAP // 2) for place in (row, column))
            tinted = tint(one.weights[row, column], DENSITY * side, one.most, COLOURS)
            pixels[top : top + len(tinted), left : left + len(tinted)] = tinted
    edge = GAP / 2 / pitch
    squares = [
        {"x": column + edge, "x2": column + 1 - edge, "y": row + edge, "y2": row + 1 - edge}
        for row in range(num_layers) for column in range(num_heads)
    ]  # fmt: skip
    places = {
        "x": number_axis("x", range(num_heads)), "x2": {"field": "x2"},
        "y": number_axis("y", one.layers), "y2": {"field": "y2"},
    }  # fmt: skip
    grounds = layer(squares, "rect", places, fill=theme.ground, aria=False)
    image = place_image(encode_png(pixels), width, height)
    return {"title": _title(one), "width": width, "height": height, "layer": [grounds, image]}
