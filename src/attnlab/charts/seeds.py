"""Every seed of every arm as a dot, the mean as a bar; a thin line connects the arms of one seed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from .axis import Axis, can_show
from .chart import Spec
from .curves import draw_floor, shorten
from .theme import FILE, Layer, Theme, frame, layer, nominal, quantitative

WIDTH, ROW = 340, 34


@dataclass(frozen=True)
class SeedDot:
    """The value of one seed of an arm."""

    arm: str
    seed: int
    value: float


@dataclass(frozen=True)
class Dots:
    """The values to draw: the arms from top to bottom, also those without a value, and the title of the axis.

    floor: the value of a trivial strategy, a dashed line, or None.
    """

    arms: Sequence[str]
    dots: Sequence[SeedDot]
    across: str
    is_logarithmic: bool = False
    floor: float | None = None


def draw(drawn: Dots, title: str, subtitle: str | Sequence[str] = "", theme: Theme = FILE) -> Spec:
    """Draw a row for each arm. Values without a place on the axis are omitted."""
    dots = [dot for dot in drawn.dots if can_show(dot.value, drawn.is_logarithmic)]
    floors = [] if drawn.floor is None else [drawn.floor]
    axis = Axis.fit([*(dot.value for dot in dots), *floors], is_logarithmic=drawn.is_logarithmic)
    names = {arm: shorten(arm) for arm in drawn.arms}
    rows: list[Layer] = [{"arm": names[dot.arm], "seed": dot.seed, "value": dot.value} for dot in dots]
    labels = {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "offset": 4, "grid": True}
    y = nominal("arm", scale={"domain": list(names.values())}, axis=labels)
    bars, order = compute_means(dots, names, drawn.is_logarithmic), list(names.values())
    ordered = [{**row, "row": order.index(row["arm"])} for row in rows]
    by_seed = {"detail": nominal("seed"), "order": quantitative("row")}
    tooltip = {"tooltip": [nominal("arm"), nominal("seed"), quantitative("value", format=".5~g")]}
    layers = [
        *(draw_floor(floor, {"y": {"value": 0}, "y2": {"value": "height"}}, theme) for floor in floors),
        layer(ordered, "line", by_seed, strokeWidth=1, strokeOpacity=0.3, color=theme.ink),
        layer(bars, "tick", thickness=3, size=22, color=theme.orange),
        layer(rows, "point", tooltip, filled=True, size=45, opacity=1, fillOpacity=0.85, color=theme.blue),
    ]
    encoding = {"x": axis.encode_across("value", drawn.across), "y": y}
    height = ROW * max(1, len(drawn.arms))
    return frame(title, subtitle, theme, width=WIDTH, height=height, encoding=encoding, layer=layers)


def compute_means(dots: Sequence[SeedDot], names: dict[str, str], is_logarithmic: bool) -> list[Layer]:
    """Return the mean of each arm, in the scale of the axis."""
    rows = []
    for arm, name in names.items():
        values = [dot.value for dot in dots if dot.arm == arm]
        if values:
            mean = math.exp(fmean(map(math.log, values))) if is_logarithmic else fmean(values)
            rows.append({"arm": name, "value": mean})
    return rows
