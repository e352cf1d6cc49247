"""Where traces ended: of every layer the mean over heads and seeds, an arm a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.statistics.account import show

from .figures import capital, traced_in_words
from .history import WHOLE, History, averaged
from .results import summed


@dataclass(frozen=True)
class TraceTable:
    """The last traces of one kind: a row for every layer, a cell for every arm."""

    title: str
    arms: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


def traces_of(history: History) -> list[TraceTable]:
    """Return a table for every kind of trace that has layers."""
    lines, place = history.lines("trace"), history.place
    found = []
    for kind, layers in history.traced().items():
        if set(layers) == {WHOLE}:
            continue
        has_any = {arm for (arm, _), some in lines.items() if any(name in some[-1] for name in layers.values())}
        arms = [row.arm for row in place.rows if row.arm in has_any]
        rows = [(layer or "model", [last_of(history, arm, name) for arm in arms]) for layer, name in layers.items()]
        found.append(TraceTable(f"{capital(traced_in_words(kind))}: {place.title}", arms, rows))
    return found


def last_of(history: History, arm: str, name: str) -> str:
    """Write the mean over heads and seeds at the last step."""
    take = averaged([name])
    ends = {seed: take(some[-1]) for (one, seed), some in history.lines("trace").items() if one == arm}
    return show(summed(ends).mean)
