"""The charts of a report: forest, seeds, learning curves, traces. Each is data until a theme draws it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attnlab.charts import Spec, curves, forest, seeds
from attnlab.charts.curves import Curves, Point
from attnlab.charts.forest import Effect
from attnlab.charts.seeds import Dots, SeedDot
from attnlab.charts.theme import Theme
from attnlab.statistics.formatting import percent

from .cells import format_comparison, get_fair_comparison, is_not_comparable
from .history import History, make_averager
from .results import PhaseResults, read_number

FOREST, SEEDS, CURVES, TRACES, LEAKS = "forest", "seeds", "curves", "traces", "leak"
KINDS = (FOREST, SEEDS, CURVES, TRACES, LEAKS)
TRACED = {
    "entropy": "entropy of attention in nats", "weight_norm": "norm of all weights", "alpha": "learned α",
    "alpha_now": "scheduled α",
}  # fmt: skip
"""What is traced, in words; a learned parameter is called as its mechanism calls it."""


class Figure(NamedTuple):
    """A chart with its kind, the name of its file, what it shows in words, and how it is drawn."""

    kind: str
    name: str
    title: str
    caption: str
    draw: Callable[[Theme], Spec]


@dataclass(frozen=True)
class Curve:
    """Learning curves that are to be drawn: what goes up, and under which title."""

    kind: str
    name: str
    title: str
    up: str
    points: Sequence[Point]
    note: str = ""
    """What is said below the title, besides the place."""
    is_deciding: bool = False
    """Whether it is the figure that decides, which has a floor."""

    @property
    def is_logarithmic(self) -> bool:
        """Whether ratios are what matters, as with perplexities."""
        return "perplexity" in self.up and all(point.value > 0 for point in self.points)


def list_figures(histories: Sequence[History]) -> list[Figure]:
    """List all charts there is something to draw for."""
    found = [make(history.place) for history in histories for make in (_make_forest, _make_seed_plot)]
    found += [_make_curve_figure(history.place, curve) for history in histories for curve in _list_curves(history)]
    return [figure for figure in found if figure is not None]


def _make_forest(place: PhaseResults) -> Figure | None:
    """Draw the differences of the arms that can be compared."""
    rows = [(row.arm, comparison) for row in place.rows if (comparison := get_fair_comparison(row)) is not None]
    apart = [row.arm for row in place.rows if is_not_comparable(row)]
    if not rows or place.smallest is None:
        return None
    effects = []
    for arm, comparison in rows:
        asked = comparison.question
        pairs = [
            asked.to_difference(asked.to_analysis(two) - asked.to_analysis(one))
            for _, one, two in comparison.per_seed if one is not None and two is not None
        ]  # fmt: skip
        words = format_comparison(comparison)
        effects.append(Effect(arm, comparison.difference, comparison.interval, pairs, words))
    question, smallest = rows[0][1].question, place.smallest
    unit = ", in percent" if question.scale == "log" else ""
    better = "more" if question.higher_is_better else "less"
    levels = sorted(dict.fromkeys(1 - comparison.level for _, comparison in rows))
    shown = percent(levels[0]) + (f" to {percent(levels[-1])}, as one family" if len(levels) > 1 else "")
    baseline = next(row.arm for row in place.rows if row.is_baseline)
    titles = (
        f"Difference to {baseline}",
        place.title,
        f"difference in {_split_words(place.figure)}{unit} ({better} is better)",
    )
    caption = (
        f"Squares are differences to {baseline}, lines their intervals ({shown}), dots the pairs of seeds. Grey is "
        f"smaller than {smallest:g}{' %' if unit else ''}, the smallest difference worth having."
    )
    if apart:
        caption += f" Not comparable, and so not here: {', '.join(apart)}."
    return Figure(
        FOREST, _make_file_name(FOREST, place), f"{titles[0]}: {place.title}", caption,
        lambda theme: forest.draw(effects, smallest, titles, theme),
    )  # fmt: skip


def _make_seed_plot(place: PhaseResults) -> Figure | None:
    """Draw the deciding figure of every seed."""
    names = {row.arm: row.arm + (f" ({row.num_lost} failed)" if row.num_lost else "") for row in place.rows}
    found = [
        SeedDot(names[row.arm], seed, value)
        for row in place.rows for seed, value in row.values.items() if value is not None
    ]  # fmt: skip
    if not found:
        return None
    is_logarithmic = "perplexity" in place.figure and all(dot.value > 0 for dot in found)
    floor = None if place.floor is None else place.floor[0]
    drawn = Dots(list(names.values()), found, _split_words(place.figure), is_logarithmic, floor)
    scale = " The axis is logarithmic, and so is the mean." if is_logarithmic else ""
    caption = (
        f"Dots are seeds, thin lines join what is of one seed, orange is the mean.{scale}{_write_floor_caption(place)}"
    )
    return Figure(
        SEEDS, _make_file_name(SEEDS, place), f"Every seed: {place.title}", caption,
        lambda theme: seeds.draw(drawn, f"{capitalize(_split_words(place.figure))} of every seed", place.title, theme),
    )  # fmt: skip


def _write_floor_caption(place: PhaseResults) -> str:
    """Say what the dashed line is, where there is one."""
    return "" if place.floor is None else f" The dashed line is the floor, {place.floor[0]:.4g}: {place.floor[1]}."


def _list_curves(history: History) -> list[Curve]:
    """List the learning curves and traces of one phase and size."""
    losses = history.make_points("train", lambda line: read_number(line["loss"]))
    found = [Curve(CURVES, "train-loss", "Loss while training", "train loss", losses)]
    for name in history.list_figures():
        points = history.make_points("evaluation", lambda line, name=name: read_number(line.get(name)))  # type: ignore[misc]
        title = f"{capitalize(_split_words(name))} on what is held out"
        found.append(Curve(CURVES, name, title, _split_words(name), points, is_deciding=name == history.place.figure))
    for kind, layers in history.find_traces().items():
        points = history.make_points("trace", make_averager(list(layers.values())))
        note = "mean over layers and heads" if len(layers) > 1 else ""
        found.append(Curve(TRACES, kind, capitalize(describe_trace(kind)), describe_trace(kind), points, note))
    return found


def _make_curve_figure(place: PhaseResults, curve: Curve) -> Figure | None:
    """Draw one set of curves; a value at one step alone is none."""
    if len({point.step for point in curve.points}) < 2:
        return None
    floor = place.floor[0] if curve.is_deciding and place.floor is not None else None
    drawn = Curves(curve.points, curve.up, is_logarithmic=curve.is_logarithmic, floor=floor)
    num_seeds = len({point.seed for point in curve.points})
    caption = "" if num_seeds > 1 else "One seed an arm."
    caption = (caption + _write_floor_caption(place)).strip() if floor is not None else caption
    below = "; ".join(filter(None, (place.title, curve.note)))
    return Figure(
        curve.kind, _make_file_name(curve.kind, place, curve.name), f"{curve.title}: {place.title}", caption,
        lambda theme: curves.draw(drawn, curve.title, below, theme),
    )  # fmt: skip


def describe_trace(kind: str) -> str:
    """Say what was traced."""
    return TRACED.get(kind, f"learned {_split_words(kind)}, as stored")


def _split_words(name: str) -> str:
    """Write a name as words."""
    return name.replace("_", " ")


def capitalize(words: str) -> str:
    """Begin with a capital, and leave the rest as it is."""
    return words[:1].upper() + words[1:]


def _make_file_name(kind: str, place: PhaseResults, what: str = "") -> str:
    """Return the name of a figure's file, without its ending."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", "-".join(filter(None, (kind, place.phase, place.size, what)))).strip("-")
