"""Weights as pictures, queries down and keys across: positive ones orange, negative ones blue, stronger where they
are larger. What a query may see lies on a pale ground, so that weight on anything else stands out."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .chart import SCHEMA, Spec
from .theme import FILE, Theme, config

SIZE = 216
"""The side of a picture; a line of its title holds this many pixels of words."""
PIXELS_PER_CHARACTER = 6.0
MOST_LABELS = 24
"""How many tokens can be named along a side."""


@dataclass(frozen=True)
class Picture:
    """The weights of one mechanism, rows of queries, and what is to be seen in them."""

    title: str
    sentence: str
    weights: Sequence[Sequence[float]]


def draw(
    pictures: Sequence[Picture],
    tokens: Sequence[str] = (),
    title: str = "",
    columns: int = 3,
    causal: bool = True,
    theme: Theme = FILE,
) -> Spec:
    """Draw pictures of the same tokens side by side, each on a scale up to its own largest weight.

    tokens: what the rows and columns are called; their positions if left out.
    """
    tokens = tokens or [str(i) for i in range(max((len(picture.weights) for picture in pictures), default=0))]
    shared = config(theme)
    shared["title"] |= {"fontSize": 13, "subtitleFontSize": 12, "offset": 8}
    heading = {"title": {"text": title, "fontSize": 16, "offset": 16}} if title else {}
    return {
        "$schema": SCHEMA,
        **heading,
        "columns": columns,
        "spacing": 28,
        "concat": [_panel(picture, tokens, causal, theme) for picture in pictures],
        "resolve": {"scale": {"fillOpacity": "independent"}},
        "config": shared,
    }


def _panel(picture: Picture, tokens: Sequence[str], causal: bool, theme: Theme) -> dict[str, Any]:
    num_tokens = len(tokens)
    visible = [_cell(i, 0, i + 1 if causal else num_tokens) for i in range(num_tokens)]
    values = [
        _cell(i, j) | {"size": round(abs(weight), 4), "sign": _sign(weight)}
        for i, row in enumerate(picture.weights)
        for j, weight in enumerate(row)
        # Half of the pairs and more have no weight: leaving them out makes the picture as much smaller.
        if abs(weight) > 1e-4
    ]
    words = int(SIZE / PIXELS_PER_CHARACTER)
    return {
        "title": {
            "text": textwrap.wrap(picture.title, words),
            "subtitle": textwrap.wrap(picture.sentence, words),
        },
        "width": SIZE,
        "height": SIZE,
        "encoding": {
            "x": _axis("key", tokens, "top"),
            "x2": {"field": "right"},
            "y": _axis("query", tokens, "left"),
            "y2": {"field": "below"},
        },
        "layer": [
            {"data": {"values": visible}, "mark": {"type": "rect", "fill": theme.ground, "aria": False}},
            {
                "data": {"values": values},
                "mark": {"type": "rect", "aria": False},
                "encoding": {
                    "fill": _colour(theme),
                    "fillOpacity": _strength([value["size"] for value in values]),
                },
            },
        ],
    }


def _cell(query: int, key: int, num_keys: int = 1) -> dict[str, Any]:
    return {"query": query, "below": query + 1, "key": key, "right": key + num_keys}


def _sign(weight: float) -> str:
    return "negative" if weight < 0 else "positive"


def _colour(theme: Theme) -> dict[str, Any]:
    scale = {"domain": ["positive", "negative"], "range": [theme.orange, theme.blue]}
    return {"field": "sign", "type": "nominal", "scale": scale, "legend": None}


def _strength(sizes: list[float]) -> dict[str, Any]:
    # The square root, else the first rows, whose few keys share all the weight, would leave the others pale.
    scale = {"type": "sqrt", "domain": [0, max(sizes, default=1)], "range": [0, 1]}
    return {"field": "size", "type": "quantitative", "scale": scale, "legend": None}


def _axis(field: str, tokens: Sequence[str], side: str) -> dict[str, Any]:
    """Name the tokens at the middle of their rows or columns, as many as there is room for."""
    num_tokens = len(tokens)
    step = max(1, math.ceil(num_tokens / MOST_LABELS))
    axis = {
        "orient": side,
        "values": [i + 0.5 for i in range(0, num_tokens, step)],
        "labelExpr": f"{json.dumps(list(tokens))}[floor(datum.value)]",
        "labelFontSize": 8,
        "labelPadding": 3,
        "labelOverlap": False,
        "titleFontSize": 11,
        "titlePadding": 4,
        "ticks": False,
        "domain": False,
        "grid": False,
        "title": field,
    }
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, num_tokens], "nice": False, "reverse": field == "query"},
        "axis": axis,
    }
