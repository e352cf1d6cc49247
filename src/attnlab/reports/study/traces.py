"""Where traces ended: of every layer the mean over heads and seeds, an arm a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.statistics.formatting import show

from .figures import capitalize, describe_trace
from .history import WHOLE, History, make_averager
from .results import summarize


@dataclass(frozen=True)
class TraceTable:
    """The last traces of one kind: a row for every layer, a cell for every arm."""

    title: str
    arms: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


def make_trace_tables(history: History) -> list[TraceTable]:
    """Return a table for every kind of trace that has layers."""
    lines, place = history.read_lines("trace"), history.place
    found = []
    for kind, layers in history.find_traces().items():
        if set(layers) == {WHOLE}:
            continue
        has_any = {arm for (arm, _), some in lines.items() if any(name in some[-1] for name in layers.values())}
        arms = [row.arm for row in place.rows if row.arm in has_any]
        rows = [
            (layer or "model", [_format_last_mean(history, arm, name) for arm in arms])
            for layer, name in layers.items()
        ]
        found.append(TraceTable(f"{capitalize(describe_trace(kind))}: {place.title}", arms, rows))
    return found


def _format_last_mean(history: History, arm: str, name: str) -> str:
    """Write the mean over heads and seeds at the last step."""
    take = make_averager([name])
    ends = {seed: take(some[-1]) for (one, seed), some in history.read_lines("trace").items() if one == arm}
    return show(summarize(ends).mean)
