"""What a search tried: a figure against the values of a setting, one line per arm. A ring is a value that was chosen.

The ring grows with the number of runs that got the value. Values are on a logarithmic axis if all are above 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .axis import LINE, Axis, can_show, spread
from .chart import Spec
from .curves import GAP, HEIGHT, WIDTH, shorten
from .theme import FILE, Theme, frame, layer, nominal, quantitative

RING = 90
"""The area of the smallest ring."""


@dataclass(frozen=True)
class TriedValue:
    """The mean figure of an arm at a value, and how many runs got the value."""

    arm: str
    tried: float
    value: float
    num_chosen: int = 0


@dataclass(frozen=True)
class TriedValues:
    """The values to draw, and the titles of the axes. is_logarithmic: of the figure."""

    points: Sequence[TriedValue]
    up: str
    across: str
    is_logarithmic: bool = False

    @property
    def arms(self) -> list[str]:
        """The arms, in the order of the points."""
        return list(dict.fromkeys(point.arm for point in self.points))


def draw(tried: TriedValues, title: str, subtitle: str | Sequence[str] = "", theme: Theme = FILE) -> Spec:
    """Draw a line for each arm, with its name beside its end. Values without a place on the axis are omitted."""
    points = [point for point in tried.points if can_show(point.value, tried.is_logarithmic)]
    up = Axis.fit([point.value for point in points], is_logarithmic=tried.is_logarithmic)
    is_log_across = all(point.tried > 0 for point in points)
    across = Axis.fit([point.tried for point in points], is_logarithmic=is_log_across)
    height = max(HEIGHT, LINE * len(tried.arms))
    colours = [theme.colours[number % len(theme.colours)] for number in range(len(tried.arms))]
    encoding = {
        "x": across.encode_across("tried", tried.across),
        "y": up.encode_up("value", tried.up),
        "color": nominal("arm", legend=None, scale={"domain": tried.arms, "range": colours}),
    }
    rows = [{**vars(point), "area": RING * (1 + point.num_chosen)} for point in points]
    chosen = [row for row in rows if row["num_chosen"]]
    last = {arm: max((row for row in rows if row["arm"] == arm), key=lambda row: row["tried"]) for arm in
            dict.fromkeys(row["arm"] for row in rows)}  # fmt: skip
    places = spread({arm: height * (1 - up.share(row["value"])) for arm, row in last.items()}, height)
    names = [
        {**row, "name": shorten(arm), "at": up.value(1 - places[arm] / height)} for arm, row in last.items()
    ]  # fmt: skip
    beside = {"value": WIDTH + GAP}
    text = {"x": beside, "y": quantitative("at"), "color": {"value": theme.ink}, "text": nominal("name")}
    size = {"size": quantitative("area", scale=None)}
    layers = [
        layer(rows, "line", strokeWidth=2.25),
        layer(rows, "point", filled=True, size=35, opacity=1, tooltip={"content": "data"}),
        layer(chosen, "point", size, filled=False, strokeWidth=2, opacity=1),
        layer(names, "rule", {"x2": beside, "y2": {"field": "at"}}, strokeWidth=1, opacity=0.7),
        layer(names, "text", text, align="left", dx=4, fontSize=12),
    ]
    return frame(title, subtitle, theme, width=WIDTH, height=height, encoding=encoding, layer=layers)
