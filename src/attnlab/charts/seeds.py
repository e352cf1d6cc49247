"""Every seed of every arm as a dot, the mean as a bar across; a thin line joins what is of one seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .axis import Axis
from .chart import SCHEMA, Spec
from .curves import FLOOR_DASHES, short
from .forest import across_of
from .theme import FILE, Theme, config

WIDTH, ROW = 340, 34

Layer = dict[str, Any]


@dataclass(frozen=True)
class SeedDot:
    """The value of one seed of an arm."""

    arm: str
    seed: int
    value: float


@dataclass(frozen=True)
class Dots:
    """What is drawn: the arms from top to bottom, also those without a value, and the name of the axis.

    floor: what a trivial strategy reaches, a dashed line; None draws none.
    """

    arms: Sequence[str]
    dots: Sequence[SeedDot]
    across: str
    is_logarithmic: bool = False
    floor: float | None = None

    def can_show(self, dot: SeedDot) -> bool:
        """Tell whether a value has a place on the axis."""
        return math.isfinite(dot.value) and (dot.value > 0 or not self.is_logarithmic)


def draw(drawn: Dots, title: str, subtitle: str | Sequence[str] = "", theme: Theme = FILE) -> Spec:
    """Draw a row for each arm. Values that are no numbers are left out."""
    dots = [dot for dot in drawn.dots if drawn.can_show(dot)]
    floors = [] if drawn.floor is None else [drawn.floor]
    axis = Axis.around([*(dot.value for dot in dots), *floors], is_logarithmic=drawn.is_logarithmic)
    names = {arm: short(arm) for arm in drawn.arms}
    rows = [{"arm": names[dot.arm], "seed": dot.seed, "value": dot.value} for dot in dots]
    y = {
        "field": "arm", "type": "nominal",
        "scale": {"domain": list(names.values())},
        "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "offset": 4, "grid": True},
    }  # fmt: skip
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": subtitle if isinstance(subtitle, str) else list(subtitle)},
        "width": WIDTH,
        "height": ROW * max(1, len(drawn.arms)),
        "encoding": {"x": across_of(axis, "value", drawn.across), "y": y},
        "layer": [
            *(floor_line(floor, theme) for floor in floors),
            *_layers(rows, means(dots, names, drawn.is_logarithmic), list(names.values()), theme),
        ],
        "config": config(theme),
    }


def floor_line(floor: float, theme: Theme) -> Layer:
    """Draw what a trivial strategy reaches, from top to bottom."""
    return {
        "data": {"values": [{"value": floor}]},
        "mark": {"type": "rule", "strokeDash": FLOOR_DASHES, "color": theme.ink, "opacity": 0.7},
        "encoding": {"y": {"value": 0}, "y2": {"value": "height"}},
    }


def means(dots: Sequence[SeedDot], names: dict[str, str], is_logarithmic: bool) -> list[Layer]:
    """Return the mean of each arm, as the axis measures."""
    found = []
    for arm, name in names.items():
        values = [dot.value for dot in dots if dot.arm == arm]
        if values:
            mean = math.exp(fmean(map(math.log, values))) if is_logarithmic else fmean(values)
            found.append({"arm": name, "value": mean})
    return found


def _layers(rows: list[Layer], bars: list[Layer], names: list[str], theme: Theme) -> list[Layer]:
    order = [{**row, "row": names.index(row["arm"])} for row in rows]
    tooltip = [
        {"field": "arm", "type": "nominal"},
        {"field": "seed", "type": "nominal"},
        {"field": "value", "type": "quantitative", "format": ".5~g"},
    ]
    return [
        {"data": {"values": order}, "mark":
         {"type": "line", "strokeWidth": 1, "strokeOpacity": 0.3, "color": theme.ink},
         "encoding": {"detail": {"field": "seed", "type": "nominal"},
                      "order": {"field": "row", "type": "quantitative"}}},
        {"data": {"values": bars}, "mark": {"type": "tick", "thickness": 3, "size": 22, "color": theme.orange}},
        {"data": {"values": rows}, "mark":
         {"type": "point", "filled": True, "size": 45, "opacity": 1, "fillOpacity": 0.85, "color": theme.blue},
         "encoding": {"tooltip": tooltip}},
    ]  # fmt: skip
