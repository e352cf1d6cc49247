"""A numeric axis: its ends, its ticks, and the labels beside it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from attnlab.visible import make_visible

from .theme import Layer, quantitative

MARGIN = 0.04
"""The share of the axis beyond the lowest and the highest value."""
LINE = 16
"""The height of a label."""
MIN_TICKS, MAX_TICKS = 3, 7
LABEL = (
    "datum.value == 0 || abs(datum.value) >= 1e-4 && abs(datum.value) < 1e6 "
    "? format(datum.value, ',~r') "
    ": format(datum.value, abs(datum.value) >= 1e6 && abs(datum.value) < 1e15 ? '~s' : '~e')"
)
"""How a tick is written, millions and more as 2M, 3G, 4T: Vega's own format would round to the digits of the axis."""
TOP = 0.97
"""The highest share of the axis at which a tick is shown: a label at the very top would make the chart taller."""


SEPARATOR = "\x1f"
"""Between names in one text: the unit separator, which no name has."""


def look_up(names: Sequence[str]) -> str:
    """Return an expression of Vega for the name of the tick at datum.value, counted from 0.

    The names are one text, since Vega takes a text that is the name of a function, such as "if", for a signal. They are
    made visible here: Vega decodes the escapes of an expression.
    """
    clean = [make_visible(name.replace(SEPARATOR, " ")) for name in names]
    return f"split({json.dumps(SEPARATOR.join(['', *clean]))}, {json.dumps(SEPARATOR)})[1 + floor(datum.value)]"


def can_show(value: float, is_logarithmic: bool) -> bool:
    """Tell whether a value has a place on an axis."""
    return math.isfinite(value) and (value > 0 or not is_logarithmic)


@dataclass(frozen=True)
class Axis:
    """The ends of an axis, and how values map to shares of its length."""

    low: float
    high: float
    is_logarithmic: bool = False

    @classmethod
    def fit(cls, values: Sequence[float], *, is_logarithmic: bool) -> "Axis":
        """Return an axis that holds all values, with a margin at both ends."""
        low, high = min(values, default=1.0), max(values, default=2.0)
        if low == high:
            # A single value is in the middle.
            room = max(1.0, abs(low) / 10)
            low, high = (low / 2, high * 2) if is_logarithmic else (low - room, high + room)
        tight = cls(low, high, is_logarithmic)
        return cls(tight.value(-MARGIN), tight.value(1 + MARGIN), is_logarithmic)

    def share(self, value: float) -> float:
        """Return the share of the axis below a value."""
        into = math.log if self.is_logarithmic else float
        return (into(value) - into(self.low)) / (into(self.high) - into(self.low))

    def value(self, share: float) -> float:
        """Return the value at a share of the axis."""
        if self.is_logarithmic:
            return self.low * math.pow(self.high / self.low, share)
        return self.low + (self.high - self.low) * share

    @property
    def scale(self) -> Layer:
        """The scale of a Vega-Lite encoding."""
        return {"domain": [self.low, self.high], "nice": False, **({"type": "log"} if self.is_logarithmic else {})}

    def encode_up(self, field: str, title: str) -> Layer:
        """Return a vertical encoding."""
        # A minimum room for the labels, so that charts side by side have the same size.
        axis = {"title": title, "values": self.ticks(), "labelExpr": LABEL, "minExtent": 36}
        return quantitative(field, scale=self.scale, axis=axis)

    def encode_across(self, field: str, title: str) -> Layer:
        """Return a horizontal encoding, with as many ticks as have room."""
        ticks = self.ticks()
        axis = {"title": title, "values": ticks[:: math.ceil(len(ticks) / 6)], "labelExpr": LABEL, "grid": False}
        return quantitative(field, scale=self.scale, axis=axis)

    def ticks(self) -> list[float]:
        """Return round numbers at equal steps, or on a logarithmic axis powers of ten and their 2 and 5 fold."""
        if self.is_logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1,), (1, 2, 5)):
                ticks = self._within([step * 10.0**power for power in powers for step in steps])
                if len(ticks) >= MIN_TICKS:
                    return ticks[:: math.ceil(len(ticks) / MAX_TICKS)]
        least = (self.high - self.low) / MAX_TICKS
        power = 10.0 ** math.floor(math.log10(least))
        apart = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
        numbers = range(math.ceil(self.low / apart), math.floor(self.high / apart) + 1)
        return self._within([apart * number for number in numbers])

    def _within(self, ticks: Sequence[float]) -> list[float]:
        return [tick for tick in ticks if self.low <= tick and self.share(tick) <= TOP]


def spread(places: Mapping[str, float], height: float) -> dict[str, float]:
    """Move labels apart until none covers another, each as little as possible: pixels from the top, in their order."""
    names = sorted(places, key=lambda name: places[name])
    # Labels that would overlap form a block around the mean of their places (isotonic regression).
    blocks: list[list[float]] = []
    for number, name in enumerate(names):
        blocks.append([places[name] - LINE * number])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    starts = [fmean(block) for block in blocks for _ in block]
    most = height - LINE * (len(names) - 1)
    return {name: min(max(starts[i], 0.0), most) + LINE * i for i, name in enumerate(names)}
