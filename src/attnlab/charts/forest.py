"""A forest plot: each arm's difference to the baseline with its interval, the pairs behind it, and what is too small.

The band around 0 is the smallest difference worth having to either side. A faint dot is the difference of one pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .axis import LABEL, Axis
from .chart import SCHEMA, Spec
from .theme import FILE, Theme, config

WIDTH, ROW = 340, 46
LEFT, RIGHT = 0.35, 0.65
"""Shares of the axis up to which, and from which on, words begin or end at their point."""

Layer = dict[str, Any]


@dataclass(frozen=True)
class Effect:
    """An arm's difference to the baseline, its interval, the difference of each pair, and the words above it."""

    arm: str
    difference: float
    interval: tuple[float, float]
    pairs: Sequence[float] = ()
    words: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether both ends are numbers; one pair alone has none."""
        return all(math.isfinite(end) for end in self.interval)

    @property
    def reach(self) -> list[float]:
        """All that must fit on the axis."""
        numbers = [self.difference, *self.pairs, *(self.interval if self.has_interval else ())]
        return [number for number in numbers if math.isfinite(number)]


def draw(
    effects: Sequence[Effect], smallest: float, titles: tuple[str, str, str], theme: Theme = FILE
) -> Spec:  # fmt: skip
    """Draw a row for each arm; `titles` are the chart's, its subtitle, and the name of the axis."""
    title, subtitle, across = titles
    effects = [effect for effect in effects if math.isfinite(effect.difference)]
    reach = [number for effect in effects for number in effect.reach]
    axis = Axis.around([-1.1 * smallest, 1.1 * smallest, *reach], is_logarithmic=False)
    y = {
        "field": "arm", "type": "nominal", "sort": [effect.arm for effect in effects],
        "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 180, "offset": 4},
    }  # fmt: skip
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle},
        "width": WIDTH,
        "height": ROW * max(1, len(effects)),
        "layer": [
            *_ground(smallest, across_of(axis, "low", across), theme),
            *_rows(effects, axis, {"x": across_of(axis, "difference", across), "y": y}, theme),
        ],
        "config": config(theme),
    }


def across_of(axis: Axis, field: str, title: str) -> Layer:
    """Return the axis from left to right, with as many numbers as have room."""
    ticks = axis.ticks()
    numbers = {"title": title, "values": ticks[:: math.ceil(len(ticks) / 6)], "labelExpr": LABEL, "grid": False}
    scale = {"domain": [axis.low, axis.high], "nice": False, **({"type": "log"} if axis.is_logarithmic else {})}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": numbers}


def _ground(smallest: float, x: Layer, theme: Theme) -> list[Layer]:
    """Draw the band of differences that are too small, and the line of no difference."""
    return [
        {"data": {"values": [{"low": -smallest, "high": smallest}]},
         "mark": {"type": "rect", "fill": theme.grid, "opacity": 0.6},
         "encoding": {"x": x, "x2": {"field": "high"}}},
        {"data": {"values": [{"low": 0}]},
         "mark": {"type": "rule", "stroke": theme.ink, "strokeDash": [4, 3]}, "encoding": {"x": x}},
    ]  # fmt: skip


def _rows(effects: Sequence[Effect], axis: Axis, places: Layer, theme: Theme) -> list[Layer]:
    """Draw pairs, intervals, means and words."""
    pairs = [{"arm": effect.arm, "difference": one} for effect in effects for one in effect.pairs if math.isfinite(one)]
    spans = [
        {"arm": effect.arm, "low": effect.interval[0], "high": effect.interval[1]}
        for effect in effects if effect.has_interval
    ]  # fmt: skip
    means = [
        {"arm": effect.arm, "difference": effect.difference, "words": effect.words,
         "side": side(axis.share(effect.difference))}
        for effect in effects
    ]  # fmt: skip
    text = {"type": "text", "dy": -13, "fontSize": 11, "fill": theme.ink}
    return [
        {"data": {"values": pairs}, "mark":
         {"type": "point", "filled": True, "size": 30, "opacity": 1, "fillOpacity": 0.45, "color": theme.orange,
          "yOffset": 10}, "encoding": places},
        {"data": {"values": spans}, "mark": {"type": "rule", "strokeWidth": 3, "color": theme.blue},
         "encoding": {**places, "x": {**places["x"], "field": "low"}, "x2": {"field": "high"}}},
        {"data": {"values": means}, "mark": {"type": "point", "filled": True, "shape": "square", "size": 90,
         "opacity": 1, "color": theme.blue}, "encoding": places},
        *({"data": {"values": [row for row in means if row["side"] == which]},
           "mark": {**text, "align": which}, "encoding": {**places, "text": {"field": "words"}}}
          for which in ("left", "center", "right")),
    ]  # fmt: skip


def side(share: float) -> str:
    """Say how words at a share of the axis are aligned, so that they stay on it."""
    return "left" if share < LEFT else "right" if share > RIGHT else "center"
