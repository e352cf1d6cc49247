"""Differences to the baseline against the size of the model or the steps of training, with the fitted line of each arm.

The axis has base 2, since a trend is a slope per doubling, with a tick at every size. The band spans ± the smallest
relevant difference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .axis import LABEL, LINE, Axis, spread
from .chart import Spec
from .curves import GAP, HEIGHT, WIDTH, shorten
from .theme import FILE, Layer, Theme, frame, layer, nominal, quantitative

DODGE = 0.02
"""The share of the axis by which arms stand apart, so that their intervals do not cover each other."""


@dataclass(frozen=True)
class TrendPoint:
    """A difference at a place, with its interval."""

    place: float
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class ArmTrend:
    """The differences of an arm, and its fitted line at the first and the last place."""

    arm: str
    points: Sequence[TrendPoint]
    line: tuple[float, float]


def draw(trends: Sequence[ArmTrend], smallest: float, titles: tuple[str, str, str, str], theme: Theme = FILE) -> Spec:
    """Draw the differences of each arm; `titles`: of the chart, below it, across and up."""
    title, subtitle, across_title, up_title = titles
    points = [point for trend in trends for point in trend.points]
    ends = [end for point in points for end in (point.difference, *point.interval) if math.isfinite(end)]
    up = Axis.fit([-1.1 * smallest, 1.1 * smallest, *ends], is_logarithmic=False)
    across = Axis.fit([point.place for point in points], is_logarithmic=True)
    height = max(HEIGHT, LINE * len(trends))
    ticks = {"title": across_title, "values": sorted({point.place for point in points}), "labelExpr": LABEL,
             "grid": False}  # fmt: skip
    x = quantitative("place", scale={**across.scale, "base": 2}, axis=ticks)
    y, arms = up.encode_up("difference", up_title), [trend.arm for trend in trends]
    colours = [theme.colours[number % len(theme.colours)] for number in range(len(arms))]
    color = nominal("arm", legend=None, scale={"domain": arms, "range": colours})
    encoding = {"x": x, "y": y, "color": color}
    band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        layer([{"low": -smallest, "high": smallest}], "rect", band, fill=theme.grid, opacity=0.6),
        layer([{"difference": 0}], "rule", {"y": y}, stroke=theme.ink, strokeDash=[4, 3]),
        *_draw_arms(trends, across, encoding),
        *_write_names(trends, up, height, encoding, theme),
    ]
    return frame(title, subtitle, theme, width=WIDTH, height=height, layer=layers)


def _draw_arms(trends: Sequence[ArmTrend], across: Axis, encoding: Layer) -> list[Layer]:
    """Draw lines, intervals and points."""
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for number, trend in enumerate(trends):
        shift = DODGE * (number - (len(trends) - 1) / 2)
        for point in trend.points:
            place = across.value(across.share(point.place) + shift)
            low, high = point.interval
            rows.append({"arm": trend.arm, "place": place, "difference": point.difference, "low": low, "high": high})
        places = trend.points[0].place, trend.points[-1].place
        lines += [
            {"arm": trend.arm, "place": place, "difference": end} for place, end in zip(places, trend.line, strict=True)
        ]
    bounded = [row for row in rows if math.isfinite(row["low"]) and math.isfinite(row["high"])]
    span = {**encoding, "y": {**encoding["y"], "field": "low"}, "y2": {"field": "high"}}
    return [
        layer(lines, "line", encoding, strokeWidth=1.5, strokeDash=[6, 3]),
        layer(bounded, "rule", span, strokeWidth=2.5),
        layer(rows, "point", encoding, filled=True, shape="square", size=70, opacity=1, tooltip={"content": "data"}),
    ]


def _write_names(trends: Sequence[ArmTrend], up: Axis, height: float, encoding: Layer, theme: Theme) -> list[Layer]:
    """Write the name of each arm beside the end of its line."""
    beside = {"value": WIDTH + GAP}
    places = spread({trend.arm: height * (1 - up.share(trend.line[1])) for trend in trends}, height)
    names = [
        {"arm": trend.arm, "name": shorten(trend.arm), "place": trend.points[-1].place, "difference": trend.line[1],
         "at": up.value(1 - places[trend.arm] / height)}
        for trend in trends
    ]  # fmt: skip
    text = {**encoding, "x": beside, "y": {**encoding["y"], "field": "at"}, "color": {"value": theme.ink},
            "text": nominal("name")}  # fmt: skip
    return [
        layer(names, "rule", {**encoding, "x2": beside, "y2": {"field": "at"}}, strokeWidth=1, opacity=0.7),
        layer(names, "text", text, align="left", dx=4, fontSize=12),
    ]
