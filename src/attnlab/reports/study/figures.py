"""The charts of a report: forest, seeds, what a search tried, learning curves, traces. A theme draws them."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from attnlab.charts import Spec, cost, curves, forest, seeds, tried_values
from attnlab.charts.cost import CostPoint
from attnlab.charts.curves import Curves, Point
from attnlab.charts.forest import Effect
from attnlab.charts.seeds import Dots, SeedDot
from attnlab.charts.theme import Theme
from attnlab.charts.tried_values import TriedValue, TriedValues
from attnlab.statistics.formatting import percent
from attnlab.tasks.scores import LOWER_IS_BETTER

from .cells import format_comparison, get_fair_comparison, is_not_comparable
from .history import History, make_averager
from .results import PhaseResults, describe_busy, read_number

FOREST, SEEDS, COSTS, SEARCH, CURVES = "forest", "seeds", "cost", "search", "curves"
TREND, TRACES, LEAKS, ATTENTION = "trend", "traces", "leak", "attention"
KINDS = (FOREST, SEEDS, COSTS, SEARCH, CURVES, TREND, TRACES, LEAKS, ATTENTION)
MIN_STEPS = 3
"""Steps of a curve: two points are not a chart."""
TRACED = {
    "entropy": "entropy of attention in nats", "weight_norm": "norm of all weights", "alpha": "learned α",
    "alpha_now": "scheduled α",
}  # fmt: skip
"""The traced quantities in words; a learned parameter has the name that its mechanism gives it."""


class Figure(NamedTuple):
    """A chart: its kind, file name, title, caption, and the function that draws it."""

    kind: str
    name: str
    title: str
    caption: str
    draw: Callable[[Theme], Spec]


def list_figures(histories: Sequence[History]) -> list[Figure]:
    """List all charts that have data."""
    figures = [make(history.place) for history in histories for make in (_make_forest, _make_seed_plot)]
    figures += [figure for history in histories for figure in _list_searches(history)]
    figures += [figure for history in histories for figure in _list_costs(history.place)]
    figures += [figure for history in histories for figure in _list_curves(history)]
    return [figure for figure in figures if figure is not None]


def _make_forest(place: PhaseResults) -> Figure | None:
    rows = [(row.arm, comparison) for row in place.rows if (comparison := get_fair_comparison(row)) is not None]
    apart = [row.arm for row in place.rows if is_not_comparable(row)]
    if not rows or place.smallest is None:
        return None
    effects = []
    for arm, comparison in rows:
        to_difference, to_analysis = comparison.question.to_difference, comparison.question.to_analysis
        pairs = [
            to_difference(to_analysis(variant) - to_analysis(baseline))
            for _, baseline, variant in comparison.per_seed if baseline is not None and variant is not None
        ]  # fmt: skip
        effects.append(Effect(arm, comparison.difference, comparison.interval, pairs, format_comparison(comparison)))
    question, smallest = rows[0][1].question, place.smallest
    unit = ", in percent" if question.scale == "log" else ""
    better = "more" if question.higher_is_better else "less"
    levels = sorted(dict.fromkeys(1 - comparison.level for _, comparison in rows))
    shown = percent(levels[0]) + (
        f" to {percent(levels[-1])}, adjusted for several comparisons" if len(levels) > 1 else ""
    )
    baseline = next(row.arm for row in place.rows if row.is_baseline)
    axis = f"difference in {_split_words(place.figure)}{unit} ({better} is better)"
    titles = (f"Difference to {baseline}", place.title, axis)
    caption = (
        f"Squares are differences to {baseline}, lines their intervals ({shown}), dots the pairs of seeds. Grey is "
        f"smaller than {smallest:g}{' %' if unit else ''}, the smallest difference of interest."
    )
    noise = next((comparison.interval for arm, comparison in rows if arm == place.aa), None)
    if noise is not None:
        caption += f" Orange is the noise floor, the interval of {baseline} against itself under other seeds."
    if apart:
        caption += f" Not comparable, and so not here: {', '.join(apart)}."
    return Figure(
        FOREST, _make_file_name(FOREST, place), f"{titles[0]}: {place.title}", caption,
        lambda theme: forest.draw(effects, smallest, titles, theme, noise),
    )  # fmt: skip


def _make_seed_plot(place: PhaseResults) -> Figure | None:
    names = {row.arm: row.arm + (f" ({row.num_lost} failed)" if row.num_lost else "") for row in place.rows}
    dots = [
        SeedDot(names[row.arm], seed, value)
        for row in place.rows for seed, value in row.values.items() if value is not None
    ]  # fmt: skip
    if not dots:
        return None
    is_logarithmic = "perplexity" in place.figure and all(dot.value > 0 for dot in dots)
    floor = None if place.floor is None else place.floor[0]
    drawn = Dots(list(names.values()), dots, _split_words(place.figure), is_logarithmic, floor)
    scale = " The axis is logarithmic, and so is the mean." if is_logarithmic else ""
    marks = "Dots are seeds, thin lines join the same seed, the orange bar is the mean."
    caption = f"{marks}{scale}{_write_floor_caption(place)}"
    return Figure(
        SEEDS, _make_file_name(SEEDS, place), f"Every seed: {place.title}", caption,
        lambda theme: seeds.draw(drawn, f"{capitalize(_split_words(place.figure))} of every seed", place.title, theme),
    )  # fmt: skip


def _list_searches(history: History) -> list[Figure]:
    """Return a chart for each setting with numbers that a search tried."""
    place, record, figures = history.place, history.record, list[Figure]()
    outcome = record.search_outcome(place.phase, place.size)
    for where in outcome.settings:
        points = [
            TriedValue(row.arm, point.value, point.mean, point.num_chosen)
            for row in place.rows
            for point in outcome.draw_curve(row.arm, where, record.results)
            if point.mean is not None and type(point.value) in (int, float)
        ]
        if len({point.tried for point in points}) < 2:
            continue
        words = _split_words(place.figure)
        tried = TriedValues(points, words, where, "perplexity" in place.figure)
        share = outcome.shared_length
        length = "" if share == 1 else f" after {share} of the steps; halving trained the better ones for longer"
        caption = (
            f"Means of the trials{length}, on data that no verdict uses. A ring is a value that runs got, larger for "
            "more runs. An arm whose ring is at an end may do better beyond it."
        )
        figures.append(Figure(
            SEARCH, _make_file_name(SEARCH, place, where), f"What the search tried: {where}, {place.title}", caption,
            partial(_draw_search, tried, f"{capitalize(words)} of trials", place.title),
        ))  # fmt: skip
    return figures


def _draw_search(tried: TriedValues, title: str, subtitle: str, theme: Theme) -> Spec:
    return tried_values.draw(tried, title, subtitle, theme)


def _list_costs(place: PhaseResults) -> list[Figure]:
    """Make a chart of quality against each cost in which the arms differ."""
    kinds: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], Any]]] = {
        "time": ("Quality and training time", "seconds of training of a run", lambda result: result.get("seconds")),
        "parameters": (
            "Quality and parameters", "parameters", lambda result: result.get("parameters", {}).get("total")
        ),
        "operations": (
            "Quality and operations", "counted operations of a run’s updates", lambda result: result.get("operations")
        ),
    }  # fmt: skip
    rows = [row for row in place.rows if not is_not_comparable(row)]
    figures = []
    for kind, (title, across, read) in kinds.items():
        points = [
            CostPoint(row.arm, seed, float(paid), value)
            for row in rows for seed, value in row.values.items()
            if value is not None and (paid := read_number(read(row.read_result(seed)))) is not None
        ]  # fmt: skip
        if len(points) < MIN_STEPS or not _differ_between_arms(points):
            continue
        figures.append(_make_cost_chart(place, kind, (title, place.title, across, _split_words(place.figure)), points))
    return figures


def _differ_between_arms(points: Sequence[CostPoint]) -> bool:
    """Whether two arms differ with the same seed; batches of another seed may have more padding."""
    costs: dict[int, set[float]] = {}
    for point in points:
        costs.setdefault(point.seed, set()).add(point.cost)
    return any(len(some) > 1 for some in costs.values())


def _make_cost_chart(
    place: PhaseResults, kind: str, titles: tuple[str, str, str, str], points: Sequence[CostPoint]
) -> Figure:
    is_logarithmic = "perplexity" in place.figure and all(point.value > 0 for point in points)
    better = "lower" if place.figure in LOWER_IS_BETTER else "higher"
    apart = [row.arm for row in place.rows if is_not_comparable(row)]
    caption = f"Pale dots are seeds, large dots their means; {better} is better, and cheaper is to the left."
    caption += f" Not comparable, and so not here: {', '.join(apart)}." if apart else ""
    busy = describe_busy(place.rows) if kind == "time" else ""
    caption += f" {busy[0].upper()}{busy[1:]}." if busy else ""
    return Figure(
        COSTS, _make_file_name(COSTS, place, kind), f"{titles[0]}: {place.title}", caption,
        lambda theme: cost.draw(points, titles, theme, is_logarithmic=is_logarithmic),
    )  # fmt: skip


def _write_floor_caption(place: PhaseResults) -> str:
    return "" if place.floor is None else f" The dashed line is the floor, {place.floor[0]:.4g}: {place.floor[1]}."


def _list_curves(history: History) -> list[Figure | None]:
    place = history.place
    losses = history.make_points("train", lambda line: read_number(line["loss"]))
    figures = [_make_curves(place, CURVES, "train-loss", "Loss while training", "train loss", losses)]
    for name in history.list_figures():
        points = history.make_points("evaluation", lambda line, name=name: read_number(line.get(name)))  # type: ignore[misc]
        words = _split_words(name)
        floor = place.floor if name == place.figure else None
        title = f"{capitalize(words)} on held-out data"
        unfinished = history.list_unfinished() if name == place.figure else []
        figures.append(_make_curves(place, CURVES, name, title, words, points, floor, unfinished=unfinished))
    for kind, layers in history.find_traces().items():
        points = history.make_points("trace", make_averager(list(layers.values())))
        words, note = describe_trace(kind), "mean over layers and heads" if len(layers) > 1 else ""
        figures.append(_make_curves(place, TRACES, kind, capitalize(words), words, points, note=note))
    return figures


def _make_curves(
    place: PhaseResults, kind: str, name: str, title: str, up: str, points: Sequence[Point],
    floor: tuple[float, str] | None = None, note: str = "", unfinished: Sequence[str] = (),
) -> Figure | None:  # fmt: skip
    if len({point.step for point in points}) < MIN_STEPS or _is_constant(points):
        return None
    is_logarithmic = "perplexity" in up and all(point.value > 0 for point in points)
    bottom = None if floor is None else floor[0]
    drawn = Curves(points, up, is_logarithmic=is_logarithmic, floor=bottom, unfinished=unfinished)
    caption = "" if len({point.seed for point in points}) > 1 else "One seed per arm."
    caption = (caption + _write_floor_caption(place)).strip() if floor is not None else caption
    if unfinished:
        caption += " A triangle marks an arm that was still improving: longer training may give another result."
    below = "; ".join(filter(None, (place.title, note)))
    return Figure(
        kind, _make_file_name(kind, place, name), f"{title}: {place.title}", caption.strip(),
        lambda theme: curves.draw(drawn, title, below, theme),
    )  # fmt: skip


def _is_constant(points: Sequence[Point]) -> bool:
    """Whether no run's value changes, as with a setting that is not learned."""
    values: dict[tuple[str, int], set[float]] = {}
    for point in points:
        values.setdefault((point.arm, point.seed), set()).add(point.value)
    return all(len(some) < 2 for some in values.values())


def describe_trace(kind: str) -> str:
    """Name a traced quantity in words."""
    return TRACED.get(kind, f"learned {_split_words(kind)}, as stored")


def _split_words(name: str) -> str:
    return name.replace("_", " ")


def capitalize(words: str) -> str:
    """Capitalize the first letter only."""
    return words[:1].upper() + words[1:]


def _make_file_name(kind: str, place: PhaseResults, what: str = "") -> str:
    return make_file_name(kind, place.phase, place.size, what)


def make_file_name(*words: str) -> str:
    """Return the name of a chart's file, without its ending."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", "-".join(filter(None, words))).strip("-")
