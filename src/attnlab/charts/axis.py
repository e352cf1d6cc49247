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
FEWEST_TICKS, MOST_TICKS = 3, 8


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
        scale = {"domain": [self.low, self.high], "nice": False}
        axis: dict[str, Any] = {"title": title, "tickCount": 5, "minExtent": 30}
        if self.is_logarithmic:
            scale |= {"type": "log"}
            axis |= {"values": self.ticks(), "format": ",~g"}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    def ticks(self) -> list[float]:
        """Return round numbers on a logarithmic axis: near powers of ten, or level ones where these are too few."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1,), (1, 2, 5)):
            found = [step * 10.0**power for power in powers for step in steps]
            found = [tick for tick in found if self.low <= tick <= self.high]
            if len(found) >= FEWEST_TICKS:
                return found[:: math.ceil(len(found) / MOST_TICKS)]
        unit = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        level = [unit * number for number in range(math.ceil(self.low / unit), math.floor(self.high / unit) + 1)]
        return level[:: math.ceil(len(level) / MOST_TICKS)]


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
