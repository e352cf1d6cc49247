"""Learning curves: a value against the step, one colour per arm. The seeds of an arm are thin, their mean is bold.

The band is one standard deviation of the seeds around the mean. Both are computed in the scale of the axis: of
logarithms if it is logarithmic. They end where the first seed ends: a mean over the remaining seeds would be biased.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from .axis import LINE, Axis, can_show, spread
from .chart import Spec
from .theme import DASHES, FILE, Layer, Theme, frame, layer, nominal, quantitative

WIDTH, HEIGHT = 340, 300
GAP = 16
"""Pixels between the plot and the names."""
MAX_CHARACTERS = 41
"""The most characters of a name."""
MAX_DOTS = 12
"""The most values of a line that are drawn as dots."""


@dataclass(frozen=True)
class Point:
    """A value of one seed of an arm after a step."""

    arm: str
    seed: int
    step: int
    value: float


@dataclass(frozen=True)
class Curves:
    """The values to draw, and the titles of the axes. `marks` are single values beside the curves, hollow diamonds.

    floor: the value of a trivial strategy, a dashed line, or None. unfinished: arms that still improve, marked at the
    end of their mean by a triangle.
    """

    points: Sequence[Point]
    up: str = "loss"
    across: str = "step"
    marks: Sequence[Point] = ()
    is_logarithmic: bool = False
    floor: float | None = None
    unfinished: Sequence[str] = ()

    @property
    def arms(self) -> list[str]:
        """The arms, in the order of the points."""
        return list(dict.fromkeys(point.arm for point in (*self.points, *self.marks)))


@dataclass(frozen=True)
class Average:
    """The mean of an arm's seeds after a step, and one standard deviation to either side."""

    arm: str
    step: int
    value: float
    low: float
    high: float


def draw(curves: Curves, title: str, subtitle: str | Sequence[str] = "", theme: Theme = FILE) -> Spec:
    """Draw a line for each arm, with its name beside its end. Values without a place on the axis are omitted."""
    points, marks = (
        [point for point in some if can_show(point.value, curves.is_logarithmic)]
        for some in (curves.points, curves.marks)
    )
    means = [mean for arm in curves.arms for mean in compute_averages(curves, arm)]
    bounds = [value for mean in means for value in (mean.low, mean.high)]
    floors = [] if curves.floor is None else [curves.floor]
    values = [*(point.value for point in (*points, *marks)), *bounds, *floors]
    axis = Axis.fit(values, is_logarithmic=curves.is_logarithmic)
    most = max((point.step for point in (*points, *marks)), default=1)
    steps = {"title": curves.across, "format": ",d", "tickCount": 5, "tickMinStep": 1, "grid": False}
    height = max(HEIGHT, LINE * len(curves.arms))
    colour, dashes = distinguish(curves.arms, theme)
    encoding = {
        "x": quantitative("step", scale={"domain": [0, most], "nice": False}, axis=steps),
        "y": axis.encode_up("value", curves.up),
        "color": colour,
    }
    layers = [
        *(draw_floor(floor, {"x": {"value": 0}, "x2": {"value": WIDTH}}, theme) for floor in floors),
        *_lines(points, means, curves, {"strokeDash": dashes}),
        *_marks(marks, find_ends(points, means)),
        *_names(find_ends(points, means), axis, height, theme),
        *_triangles([end for end in find_ends(points, means) if end.arm in curves.unfinished]),
    ]
    return frame(title, subtitle, theme, width=WIDTH, height=height, encoding=encoding, layer=layers)


def draw_floor(floor: float, across: Layer, theme: Theme) -> Layer:
    """Draw the value of a trivial strategy as a dashed line over the whole plot."""
    encoding = {**across, "color": {"value": theme.ink}}
    return layer([{"value": floor}], "rule", encoding, strokeDash=[5, 4], opacity=0.7)


def compute_averages(curves: Curves, arm: str) -> list[Average]:
    """Return the means of an arm, after the steps for which all of its seeds have a value."""
    into: Callable[[float], float] = math.log if curves.is_logarithmic else float
    back: Callable[[float], float] = _exp if curves.is_logarithmic else float
    by_seed: dict[int, dict[int, float]] = {}
    for point in curves.points:
        if point.arm == arm:
            values = by_seed.setdefault(point.seed, {})
            if can_show(point.value, curves.is_logarithmic):
                values[point.step] = into(point.value)
    shared = set.intersection(*(set(values) for values in by_seed.values())) if by_seed else set()
    means = []
    for step in sorted(shared):
        seeds = [values[step] for values in by_seed.values()]
        mean, width = fmean(seeds), stdev(seeds) if len(seeds) > 1 else 0.0
        means.append(Average(arm, step, back(mean), back(mean - width), back(mean + width)))
    return means


def _exp(exponent: float) -> float:
    """Return e to a power, limited to the largest float."""
    return math.exp(min(exponent, math.log(sys.float_info.max)))


def find_ends(points: Sequence[Point], means: Sequence[Average]) -> list[Point | Average]:
    """Return the end of each arm's mean, or of a seed if it has no mean: the place of its name."""
    last: dict[str, Point | Average] = {}
    for some in (points, means):
        for arm in dict.fromkeys(point.arm for point in some):
            last[arm] = max((point for point in some if point.arm == arm), key=lambda point: point.step)
    return list(last.values())


def shorten(name: str) -> str:
    """Cut a long name in its middle: similar mechanisms differ at their ends."""
    kept = (MAX_CHARACTERS - 1) // 2
    return name if len(name) <= MAX_CHARACTERS else f"{name[:kept]}…{name[-kept:]}"


def _lines(points: Sequence[Point], means: Sequence[Average], curves: Curves, dashes: Layer) -> list[Layer]:
    several = {arm for arm in curves.arms if len({point.seed for point in points if point.arm == arm}) > 1}
    bold = [vars(mean) for mean in means]
    thin = [vars(point) for point in points if point.arm in several]
    band = {"y": quantitative("low"), "y2": {"field": "high"}}
    # fillOpacity and strokeOpacity, not opacity: that makes a group of each of hundreds of lines, slow to rasterise.
    layers = [
        layer([row for row in bold if row["arm"] in several], "area", band, fillOpacity=0.15, strokeWidth=0),
        layer(thin, "line", {"detail": nominal("seed"), **dashes}, strokeWidth=1, strokeOpacity=0.4),
        layer(bold, "line", dashes, strokeWidth=2.25),
    ]
    if max((sum(mean.arm == arm for mean in means) for arm in curves.arms), default=0) <= MAX_DOTS:
        layers.append(layer(bold, "point", filled=True, size=35, opacity=1, tooltip={"content": "data"}))
    return layers


def _marks(marks: Sequence[Point], ends: Sequence[Point | Average]) -> list[Layer]:
    """Draw marks, and connect each to the end of its arm's curve."""
    values = {end.arm: end.value for end in ends}
    tied = [{**vars(mark), "end": values[mark.arm]} for mark in marks if mark.arm in values]
    diamond: Layer = {"shape": "diamond", "filled": False, "size": 110, "strokeWidth": 2, "opacity": 1}
    return [
        layer(tied, "rule", {"y2": {"field": "end"}, "strokeDash": {"value": [2, 3]}}, strokeWidth=1.5),
        layer([vars(mark) for mark in marks], "point", **diamond),
    ]


def _triangles(ends: Sequence[Point | Average]) -> list[Layer]:
    """Mark the ends of curves that still improve."""
    rows = [vars(end) for end in ends]
    return [layer(rows, "point", shape="triangle-right", filled=True, size=170, opacity=1)] if rows else []


def _names(ends: Sequence[Point | Average], axis: Axis, height: float, theme: Theme) -> list[Layer]:
    """Write each arm's name beside its end, and draw a line to it."""
    places = spread({end.arm: height * (1 - axis.share(end.value)) for end in ends}, height)
    rows = [{**vars(end), "name": shorten(end.arm), "at": axis.value(1 - places[end.arm] / height)} for end in ends]
    beside = {"value": WIDTH + GAP}
    text = {"x": beside, "y": quantitative("at"), "color": {"value": theme.ink}, "text": nominal("name")}
    return [
        layer(rows, "rule", {"x2": beside, "y2": {"field": "at"}}, strokeWidth=1, opacity=0.7),
        layer(rows, "text", text, align="left", dx=4, fontSize=12),
    ]


def distinguish(arms: list[str], theme: Theme) -> tuple[Layer, Layer]:
    """Return the colours of arms, and their dashes, which change when the colours repeat."""
    numbers, size = range(len(arms)), len(theme.colours)
    colours = [theme.colours[number % size] for number in numbers]
    dashes = [DASHES[number // size % len(DASHES)] for number in numbers]
    colour, dash = (nominal("arm", legend=None, scale={"domain": arms, "range": marks}) for marks in (colours, dashes))
    return colour, dash
