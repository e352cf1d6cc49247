"""Learning curves: a value against the step, a colour an arm. The seeds of an arm are thin, their mean is bold.

The band is one standard deviation of the seeds around it. Both are taken as the axis measures: of logarithms where it
is logarithmic. They end where a seed ends, since the mean of those that are left would be flattered.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from .axis import LINE, Axis, spread
from .chart import SCHEMA, Spec
from .theme import FILE, Theme, config

WIDTH, HEIGHT = 340, 300
BEHIND = 16
"""Pixels between the plot and the names."""
MOST_CHARACTERS = 41
"""Of a name."""
MOST_DOTS = 12
"""Values of a line up to which each is drawn as a dot."""
FLOOR_DASHES = [5, 4]
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])

Layer = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A value of one seed of an arm after a step."""

    arm: str
    seed: int
    step: int
    value: float


@dataclass(frozen=True)
class Curves:
    """What is drawn, and what its axes are called. `marks` are single values beside the curves, hollow diamonds.

    floor: what a trivial strategy reaches, a dashed line; None draws none.
    """

    points: Sequence[Point]
    up: str = "loss"
    across: str = "step"
    marks: Sequence[Point] = ()
    is_logarithmic: bool = False
    floor: float | None = None

    @property
    def arms(self) -> list[str]:
        """The arms, in the order they came."""
        return list(dict.fromkeys(point.arm for point in (*self.points, *self.marks)))

    def can_show(self, point: Point) -> bool:
        """Tell whether a value has a place on the axis."""
        return math.isfinite(point.value) and (point.value > 0 or not self.is_logarithmic)


@dataclass(frozen=True)
class Average:
    """The mean of an arm's seeds after a step, and one standard deviation to either side."""

    arm: str
    step: int
    value: float
    low: float
    high: float


def draw(curves: Curves, title: str, subtitle: str | Sequence[str] = "", theme: Theme = FILE) -> Spec:
    """Draw a line for each arm, with its name behind the end of it. Values that are no numbers are left out."""
    points, marks = ([one for one in some if curves.can_show(one)] for some in (curves.points, curves.marks))
    means = [one for arm in curves.arms for one in averages(curves, arm)]
    bounds = [value for one in means for value in (one.low, one.high)]
    floors = [] if curves.floor is None else [curves.floor]
    values = [*(point.value for point in (*points, *marks)), *bounds, *floors]
    axis = Axis.around(values, is_logarithmic=curves.is_logarithmic)
    most = max((point.step for point in (*points, *marks)), default=1)
    x = {
        "field": "step", "type": "quantitative", "scale": {"domain": [0, most], "nice": False},
        "axis": {"title": curves.across, "format": ",d", "tickCount": 5, "tickMinStep": 1, "grid": False},
    }  # fmt: skip
    tall, looks = max(HEIGHT, LINE * len(curves.arms)), _told_apart(curves, theme)
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle if isinstance(subtitle, str) else list(subtitle)},
        "width": WIDTH,
        "height": tall,
        "encoding": {"x": x, "y": axis.encoding("value", curves.up), "color": looks["color"]},
        "layer": [
            *(_floor_line(floor, theme) for floor in floors),
            *_lines(points, means, curves, {"strokeDash": looks["strokeDash"]}),
            *_marks(marks, ends(points, means)),
            *_names(ends(points, means), axis, tall, theme),
        ],
        "config": config(theme),
    }


def _floor_line(floor: float, theme: Theme) -> Layer:
    """Draw what a trivial strategy reaches, from left to right."""
    return {
        "data": {"values": [{"value": floor}]},
        "mark": {"type": "rule", "strokeDash": FLOOR_DASHES, "opacity": 0.7},
        "encoding": {"x": {"value": 0}, "x2": {"value": WIDTH}, "color": {"value": theme.ink}},
    }


def averages(curves: Curves, arm: str) -> list[Average]:
    """Return the means of an arm, after the steps that each of its seeds has a value for."""
    into: Callable[[float], float] = math.log if curves.is_logarithmic else float
    back: Callable[[float], float] = _exp if curves.is_logarithmic else float
    by_seed: dict[int, dict[int, float]] = {}
    for point in curves.points:
        if point.arm == arm:
            values = by_seed.setdefault(point.seed, {})
            if curves.can_show(point):
                values[point.step] = into(point.value)
    shared = set.intersection(*(set(values) for values in by_seed.values())) if by_seed else set()
    found = []
    for step in sorted(shared):
        seeds = [values[step] for values in by_seed.values()]
        mean, width = fmean(seeds), stdev(seeds) if len(seeds) > 1 else 0.0
        found.append(Average(arm, step, back(mean), back(mean - width), back(mean + width)))
    return found


def _exp(exponent: float) -> float:
    """Return e to a power, or the largest power that a number holds."""
    return math.exp(min(exponent, math.log(sys.float_info.max)))


def ends(points: Sequence[Point], means: Sequence[Average]) -> list[Point | Average]:
    """Return where each arm's name belongs: the end of its mean, or of a seed where there is no mean."""
    last: dict[str, Point | Average] = {}
    for some in (points, means):
        for arm in dict.fromkeys(one.arm for one in some):
            last[arm] = max((one for one in some if one.arm == arm), key=lambda one: one.step)
    return list(last.values())


def short(name: str) -> str:
    """Cut a long name in its middle: mechanisms that are alike differ at their ends."""
    kept = (MOST_CHARACTERS - 1) // 2
    return name if len(name) <= MOST_CHARACTERS else f"{name[:kept]}…{name[-kept:]}"


def _lines(points: Sequence[Point], means: Sequence[Average], curves: Curves, dashes: Layer) -> list[Layer]:
    several = {arm for arm in curves.arms if len({point.seed for point in points if point.arm == arm}) > 1}
    bold = {"values": [vars(one) for one in means]}
    band = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    # fillOpacity and strokeOpacity, not opacity: that makes a layer of each of hundreds of lines, slow as pixels.
    layers: list[Layer] = [
        {"data": {"values": [row for row in bold["values"] if row["arm"] in several]},
         "mark": {"type": "area", "fillOpacity": 0.15, "strokeWidth": 0}, "encoding": band},
        {"data": {"values": [vars(point) for point in points if point.arm in several]},
         "mark": {"type": "line", "strokeWidth": 1, "strokeOpacity": 0.4},
         "encoding": {"detail": {"field": "seed", "type": "nominal"}, **dashes}},
        {"data": bold, "mark": {"type": "line", "strokeWidth": 2.25}, "encoding": dashes},
    ]  # fmt: skip
    if max((sum(one.arm == arm for one in means) for arm in curves.arms), default=0) <= MOST_DOTS:
        dot = {"type": "point", "filled": True, "size": 35, "opacity": 1, "tooltip": {"content": "data"}}
        layers.append({"data": bold, "mark": dot})
    return layers


def _marks(marks: Sequence[Point], ends: Sequence[Point | Average]) -> list[Layer]:
    """Draw marks, and tie each to the end of its arm's curve."""
    diamond = {"type": "point", "shape": "diamond", "filled": False, "size": 110, "strokeWidth": 2, "opacity": 1}
    values = {end.arm: end.value for end in ends}
    tied = [{**vars(mark), "end": values[mark.arm]} for mark in marks if mark.arm in values]
    return [
        {"data": {"values": tied}, "mark": {"type": "rule", "strokeWidth": 1.5},
         "encoding": {"y2": {"field": "end"}, "strokeDash": {"value": [2, 3]}}},
        {"data": {"values": [vars(mark) for mark in marks]}, "mark": diamond},
    ]  # fmt: skip


def _names(ends: Sequence[Point | Average], axis: Axis, tall: float, theme: Theme) -> list[Layer]:
    """Write each arm's name behind its end, and lead the eye there."""
    places = spread({end.arm: tall * (1 - axis.share(end.value)) for end in ends}, tall)
    rows = {"values": [
        {**vars(end), "name": short(end.arm), "at": axis.value(1 - places[end.arm] / tall)} for end in ends
    ]}  # fmt: skip
    behind = {"value": WIDTH + BEHIND}
    text = {"type": "text", "align": "left", "dx": 4, "fontSize": 12}
    return [
        {"data": rows, "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.7},
         "encoding": {"x2": behind, "y2": {"field": "at"}}},
        {"data": rows, "mark": text,
         "encoding": {"x": behind, "y": {"field": "at", "type": "quantitative"}, "color": {"value": theme.ink},
                      "text": {"field": "name", "type": "nominal"}}},
    ]  # fmt: skip


def _told_apart(curves: Curves, theme: Theme) -> Layer:
    """Give each arm its colour, and other dashes where colours return."""
    arms, colours = curves.arms, theme.colours
    field = {"field": "arm", "type": "nominal", "legend": None}
    numbers = range(len(arms))
    looks = {
        "color": [colours[number % len(colours)] for number in numbers],
        "strokeDash": [DASHES[number // len(colours) % len(DASHES)] for number in numbers],
    }
    return {channel: {**field, "scale": {"domain": arms, "range": marks}} for channel, marks in looks.items()}
