"""The axis upward of a chart whose lines have their names beside it: its ends, its round numbers, its names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

AIR = 0.04
"""The part of the axis beyond the lowest and the highest value."""
LINE = 16
"""The height of a name."""
FEWEST_TICKS, MOST_TICKS = 3, 7
LABEL = (
    "datum.value == 0 || abs(datum.value) >= 1e-4 && abs(datum.value) < 1e6 "
    "? format(datum.value, ',~r') : format(datum.value, '~e')"
)
"""How a tick is written: Vega's own would round it to the digits that the whole axis has."""
TOP = 0.97
"""How far up the highest tick may be."""


@dataclass(frozen=True)
class Axis:
    """What the ends of the axis are, and how a value becomes a share of it."""

    low: float
    high: float
    is_logarithmic: bool = False

    @classmethod
    def around(cls, values: Sequence[float], *, is_logarithmic: bool) -> Axis:
        """Return an axis that holds all values, with air at both ends."""
        low, high = min(values, default=1.0), max(values, default=2.0)
        if low == high:
            # One value alone stands in the middle.
            room = max(1.0, abs(low) / 10)
            low, high = (low / 2, high * 2) if is_logarithmic else (low - room, high + room)
        tight = cls(low, high, is_logarithmic)
        return cls(tight.value(-AIR), tight.value(1 + AIR), is_logarithmic)

    def share(self, value: float) -> float:
        """Return how far up a value is."""
        into = math.log if self.is_logarithmic else float
        return (into(value) - into(self.low)) / (into(self.high) - into(self.low))

    def value(self, share: float) -> float:
        """Return the value so far up."""
        if self.is_logarithmic:
            return self.low * math.pow(self.high / self.low, share)
        return self.low + (self.high - self.low) * share

    def encoding(self, field: str, title: str) -> dict[str, Any]:
        """Return it as Vega-Lite has it."""
        scale: dict[str, Any] = {"domain": [self.low, self.high], "nice": False}
        if self.is_logarithmic:
            scale["type"] = "log"
        # As much room for the labels in every chart, so that those side by side are of one size.
        axis = {"title": title, "values": self.ticks(), "labelExpr": LABEL, "minExtent": 30}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    def ticks(self) -> list[float]:
        """Return round numbers: level ones, or near powers of ten on a logarithmic axis where these are enough."""
        if self.is_logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1,), (1, 2, 5)):
                found = self.shown([step * 10.0**power for power in powers for step in steps])
                if len(found) >= FEWEST_TICKS:
                    return found[:: math.ceil(len(found) / MOST_TICKS)]
        least = (self.high - self.low) / MOST_TICKS
        power = 10.0 ** math.floor(math.log10(least))
        apart = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
        numbers = range(math.ceil(self.low / apart), math.floor(self.high / apart) + 1)
        return self.shown([apart * number for number in numbers])

    def shown(self, ticks: Sequence[float]) -> list[float]:
        """Return the ticks within the axis, but for one at its very top, whose label would make the chart taller."""
        return [tick for tick in ticks if self.low <= tick and self.share(tick) <= TOP]


def spread(places: Mapping[str, float], height: float) -> dict[str, float]:
    """Move names apart until none covers another, each as little as can be: pixels from the top, in their order."""
    names = sorted(places, key=lambda name: places[name])
    # Names that would meet form a block around the middle of where they belong (isotonic regression).
    blocks: list[list[float]] = []
    for number, name in enumerate(names):
        blocks.append([places[name] - LINE * number])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    starts = [fmean(block) for block in blocks for _ in block]
    most = height - LINE * (len(names) - 1)
    return {name: min(max(starts[i], 0.0), most) + LINE * i for i, name in enumerate(names)}
