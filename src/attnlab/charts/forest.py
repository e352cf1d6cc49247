"""A forest plot: each arm's difference to the baseline with its interval and the pairs behind it.

The band spans ± the smallest relevant difference. A faint dot is the difference of one pair.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .axis import Axis
from .chart import Spec
from .theme import FILE, Layer, Theme, frame, layer, nominal

WIDTH, ROW = 340, 46
LEFT, RIGHT = 0.35, 0.65
"""Fractions of the axis: below the first, labels are left-aligned at their point; above the second, right-aligned."""


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
        """Whether both ends are finite; a single pair has no interval."""
        return all(math.isfinite(end) for end in self.interval)

    @property
    def reach(self) -> list[float]:
        """All values that must fit on the axis."""
        numbers = [self.difference, *self.pairs, *(self.interval if self.has_interval else ())]
        return [number for number in numbers if math.isfinite(number)]


def draw(
    effects: Sequence[Effect], smallest: float, titles: tuple[str, str, str], theme: Theme = FILE,
    noise: tuple[float, float] | None = None,
) -> Spec:  # fmt: skip
    """Draw a row for each arm; `titles` are the chart's title, its subtitle, and the title of the axis.

    noise: the interval of the baseline against itself, drawn as a second band.
    """
    title, subtitle, across = titles
    effects = [effect for effect in effects if math.isfinite(effect.difference)]
    reach = [number for effect in effects for number in effect.reach]
    axis = Axis.fit([-1.1 * smallest, 1.1 * smallest, *reach], is_logarithmic=False)
    labels = {"title": None, "ticks": False, "domain": False, "labelLimit": 180, "offset": 4}
    y = nominal("arm", sort=[effect.arm for effect in effects], axis=labels)
    places = {"x": axis.encode_across("difference", across), "y": y}
    x = axis.encode_across("low", across)
    band = {"x": x, "x2": {"field": "high"}}
    layers = [
        layer([{"low": -smallest, "high": smallest}], "rect", band, fill=theme.grid, opacity=0.6),
        *_draw_noise(noise, x, theme),
        layer([{"low": 0}], "rule", {"x": x}, stroke=theme.ink, strokeDash=[4, 3]),
        *_rows(effects, axis, places, theme),
    ]
    return frame(title, subtitle, theme, width=WIDTH, height=ROW * max(1, len(effects)), layer=layers)


def _draw_noise(noise: tuple[float, float] | None, x: Layer, theme: Theme) -> list[Layer]:
    if noise is None or not all(map(math.isfinite, noise)):
        return []
    edges = [{"low": end} for end in noise]
    band = {"x": x, "x2": {"field": "high"}}
    return [
        layer([{"low": noise[0], "high": noise[1]}], "rect", band, fill=theme.orange, opacity=0.12),
        layer(edges, "rule", {"x": x}, stroke=theme.orange, opacity=0.5),
    ]


def _rows(effects: Sequence[Effect], axis: Axis, places: Layer, theme: Theme) -> list[Layer]:
    """Draw pairs, intervals, means and words."""
    pairs = [
        {"arm": effect.arm, "difference": pair} for effect in effects for pair in effect.pairs if math.isfinite(pair)
    ]
    bounded = [effect for effect in effects if effect.has_interval]
    spans = [{"arm": effect.arm, "low": effect.interval[0], "high": effect.interval[1]} for effect in bounded]
    means: list[Layer] = [{"arm": each.arm, "difference": each.difference, "words": each.words} for each in effects]
    aligned: dict[str, list[Layer]] = {"left": [], "center": [], "right": []}
    for row in means:
        aligned[choose_side(axis.share(row["difference"]))].append(row)
    span = {**places, "x": {**places["x"], "field": "low"}, "x2": {"field": "high"}}
    words, point = {**places, "text": {"field": "words"}}, {"filled": True, "opacity": 1}
    return [
        layer(pairs, "point", places, **point, size=30, fillOpacity=0.45, color=theme.orange, yOffset=10),
        layer(spans, "rule", span, strokeWidth=3, color=theme.blue),
        layer(means, "point", places, **point, shape="square", size=90, color=theme.blue),
        *(layer(aligned[side], "text", words, align=side, dy=-13, fontSize=11, fill=theme.ink) for side in aligned),
    ]


def choose_side(share: float) -> str:
    """Return the alignment that keeps words at a share of the axis within it."""
    return "left" if share < LEFT else "right" if share > RIGHT else "center"
