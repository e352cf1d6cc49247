"""The final values of traces: for every layer the mean over heads and seeds, with a column for every arm."""

from attnlab.statistics.formatting import show

from .figures import capitalize, describe_trace
from .history import WHOLE, History, make_averager
from .results import summarize
from .samples import ArmTable


def make_trace_tables(history: History) -> list[ArmTable]:
    """Return a table for every kind of trace that has layers: a row for every layer."""
    lines, place = history.read_lines("trace"), history.place
    tables = []
    for kind, layers in history.find_traces().items():
        if set(layers) == {WHOLE}:
            continue
        traced = {arm for (arm, _), steps in lines.items() if any(name in steps[-1] for name in layers.values())}
        arms = [row.arm for row in place.rows if row.arm in traced]
        rows = [
            (layer or "model", [_format_last_mean(history, arm, name) for arm in arms])
            for layer, name in layers.items()
        ]
        tables.append(ArmTable(f"{capitalize(describe_trace(kind))}: {place.title}", arms, rows))
    return tables


def _format_last_mean(history: History, arm: str, name: str) -> str:
    average = make_averager([name])
    lines = history.read_lines("trace")
    return show(summarize({seed: average(steps[-1]) for (other, seed), steps in lines.items() if other == arm}).mean)
