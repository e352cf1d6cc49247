"""Weights as heatmaps, queries down and keys across: positive weights orange, negative ones blue, stronger if they are
larger. Visible pairs have a pale ground, so that weight on any other pair is conspicuous."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from .axis import look_up
from .chart import SCHEMA, Chart, Spec
from .theme import FILE, Layer, Theme, config, layer, nominal, quantitative

SIZE = 216
"""The side of a picture; a line of its title holds this many pixels of words."""
PIXELS_PER_CHARACTER = 6.0
MAX_LABELS = 24
"""The most tokens that can be named along a side."""


@dataclass(frozen=True)
class Picture:
    """The weights of one mechanism, one row per query, and a sentence about them."""

    title: str
    sentence: str
    weights: Sequence[Sequence[float]]


def draw(
    pictures: Sequence[Picture], tokens: Sequence[str] = (), title: str = "", columns: int = 3, causal: bool = True,
    theme: Theme = FILE,
) -> Spec:  # fmt: skip
    """Draw pictures of the same tokens side by side, each scaled to its own largest weight.

    tokens: the names of rows and columns; default: their positions.
    """
    tokens = tokens or [str(i) for i in range(max((len(picture.weights) for picture in pictures), default=0))]
    shared = config(theme)
    shared["title"] |= {"fontSize": 13, "subtitleFontSize": 12, "offset": 8}
    heading = {"title": {"text": title, "fontSize": 16, "offset": 16}} if title else {}
    return Chart({
        "$schema": SCHEMA,
        **heading,
        "columns": columns,
        "spacing": 28,
        "concat": [_panel(picture, tokens, causal, theme) for picture in pictures],
        "resolve": {"scale": {"fillOpacity": "independent"}},
        "config": shared,
    })  # fmt: skip


def _panel(picture: Picture, tokens: Sequence[str], causal: bool, theme: Theme) -> Layer:
    num_tokens = len(tokens)
    visible = [_cell(i, 0, i + 1 if causal else num_tokens) for i in range(num_tokens)]
    cells = [
        _cell(i, j) | {"size": round(abs(weight), 4), "sign": "negative" if weight < 0 else "positive"}
        for i, row in enumerate(picture.weights)
        for j, weight in enumerate(row)
        # At least half of the pairs have no weight: omitting them halves the file.
        if abs(weight) > 1e-4
    ]
    width = int(SIZE / PIXELS_PER_CHARACTER)
    signs = {"domain": ["positive", "negative"], "range": [theme.orange, theme.blue]}
    # The square root, since the first rows, whose few keys share all the weight, would leave the others pale.
    sizes = {"type": "sqrt", "domain": [0, max((cell["size"] for cell in cells), default=1)], "range": [0, 1]}
    opacity = quantitative("size", scale=sizes, legend=None)
    fill = {"fill": nominal("sign", scale=signs, legend=None), "fillOpacity": opacity}
    return {
        "title": {"text": textwrap.wrap(picture.title, width), "subtitle": textwrap.wrap(picture.sentence, width)},
        "width": SIZE,
        "height": SIZE,
        "encoding": {
            "x": _axis("key", tokens, "top"), "x2": {"field": "right"},
            "y": _axis("query", tokens, "left"), "y2": {"field": "below"},
        },
        "layer": [layer(visible, "rect", fill=theme.ground, aria=False), layer(cells, "rect", fill, aria=False)],
    }  # fmt: skip


def _cell(query: int, key: int, num_keys: int = 1) -> Layer:
    return {"query": query, "below": query + 1, "key": key, "right": key + num_keys}


def _axis(field: str, tokens: Sequence[str], side: str) -> Layer:
    """Name as many tokens as there is room for, at the middle of their rows or columns."""
    num_tokens = len(tokens)
    step = max(1, math.ceil(num_tokens / MAX_LABELS))
    labels = {
        "values": [i + 0.5 for i in range(0, num_tokens, step)],
        "labelExpr": look_up(tokens),
        "labelFontSize": 8, "labelPadding": 3, "labelOverlap": False,
    }  # fmt: skip
    title = {"title": field, "titleFontSize": 11, "titlePadding": 4}
    scale = {"domain": [0, num_tokens], "nice": False, "reverse": field == "query"}
    axis = {"orient": side, **labels, **title, "ticks": False, "domain": False, "grid": False}
    return quantitative(field, scale=scale, axis=axis)
