"""Quality against cost: a pale dot for each seed of an arm, and its mean with its name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from .axis import Axis, can_show
from .chart import Spec
from .curves import GAP, HEIGHT, WIDTH, distinguish, shorten
from .theme import FILE, Layer, Theme, frame, layer, nominal, quantitative

NEAR = 0.6
"""The share of the axis beyond which a name extends to the left."""
LINE = 0.055
"""The height of a name, as a share of the axis."""


@dataclass(frozen=True)
class CostPoint:
    """The cost and the quality of one seed of an arm."""

    arm: str
    seed: int
    cost: float
    value: float


def draw(
    points: Sequence[CostPoint], titles: tuple[str, str, str, str], theme: Theme = FILE, *, is_logarithmic: bool = False
) -> Spec:
    """Draw the dots; `titles` are the chart's title, its subtitle, and the titles of the axes of cost and quality."""
    title, subtitle, across, up = titles
    points = [point for point in points if can_show(point.value, is_logarithmic) and math.isfinite(point.cost)]
    arms = list(dict.fromkeys(point.arm for point in points))
    costs = Axis.fit([point.cost for point in points], is_logarithmic=False)
    values = Axis.fit([point.value for point in points], is_logarithmic=is_logarithmic)
    means = [_average(points, arm, is_logarithmic) for arm in arms]
    colour, _ = distinguish(arms, theme)
    encoding = {"x": costs.encode_across("cost", across), "y": values.encode_up("value", up), "color": colour}
    tooltip = {"tooltip": [nominal("arm"), nominal("seed"), quantitative("cost", format=".4~g"),
                           quantitative("value", format=".5~g")]}  # fmt: skip
    names = _place_names(means, costs, values)
    layers = [
        layer([vars(point) for point in points], "point", tooltip, filled=True, size=35, opacity=1, fillOpacity=0.35),
        layer(means, "point", filled=True, size=120, opacity=1),
        *(
            layer([row for row in names if row["side"] == side],
                  "text", {"y": quantitative("at"), "text": nominal("name"), "color": {"value": theme.ink}},
                  align=side, dx=-5 if side == "left" else 5, dy=-14, fontSize=12)
            for side in ("left", "right")
        ),
    ]  # fmt: skip
    return frame(title, subtitle, theme, width=WIDTH + GAP, height=HEIGHT, encoding=encoding, layer=layers)


def _average(points: Sequence[CostPoint], arm: str, is_logarithmic: bool) -> Layer:
    mine = [point for point in points if point.arm == arm]
    values = [point.value for point in mine]
    value = math.exp(fmean(map(math.log, values))) if is_logarithmic else fmean(values)
    return {"arm": arm, "cost": fmean(point.cost for point in mine), "value": value}


def _place_names(means: Sequence[Layer], costs: Axis, values: Axis) -> list[Layer]:
    """Write each name above its mean, further up if it would cover another."""
    rows: list[Layer] = []
    for mean in sorted(means, key=lambda row: row["value"]):
        side = "right" if costs.share(mean["cost"]) > NEAR else "left"
        at = values.share(mean["value"])
        taken = [row["share"] for row in rows if row["side"] == side]
        while any(abs(at - other) < LINE for other in taken):
            at += LINE
        rows.append({**mean, "name": shorten(mean["arm"]), "side": side, "share": at, "at": values.value(at)})
    return rows
