"""Reads result files as a table of cells, each with its run: arm, group and seed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.errors import RequestError, closest
from attnlab.statistics.scores import LARGEST

from .aggregates import check_aggregates, drop_averages, drop_unreported
from .caption import SpreadKind
from .columns import join_given_columns
from .damaged_cells import explain_damage, find_checked_layout
from .differences import set_differences_aside
from .figure import CellFigure, has_last_digits, is_empty, parse_figure, parse_number
from .formats.files import read_files
from .intervals import check_interval, read_intervals
from .layout import UNNAMED, TableLayout
from .mapping import quote_map, read_map, read_table_number
from .metrics import add_direction, are_same_metric, split_words
from .patterns import BASELINES
from .rows import list_columns
from .spreads import describe_spreads, settle_spreads
from .stated_averages import read_stated_averages
from .stated_summaries import read_stated_summaries
from .table import Cell, ResultTable, Run, RunPredictions, group_cells, join_words
from .task_metrics import split_tasks


@dataclass(frozen=True)
class TableHints:
    """What the user says of a table that it does not say itself.

    metric: the name of the metric. num_seeds: over how many seeds the means are. spread: what ± is, an SD over seeds, a
    standard error, or half a 95 % interval.
    """

    metric: str | None = None
    num_seeds: int | None = None
    spread: SpreadKind | None = None


def read_table(
    path: str | Sequence[str], mapping: str | None = None, baseline: str | None = None, hints: TableHints | None = None
) -> ResultTable:
    """Read a result table from one or several files; the role of a column is guessed if `mapping` does not give it."""
    hints, given = hints or TableHints(), read_map(mapping)
    rows = read_files([path] if isinstance(path, str) else path, read_table_number(given))
    rows, given = join_given_columns(rows, given)
    rows, differences, difference_names = set_differences_aside(rows, given)
    layout = find_checked_layout(rows, given, hints.metric)
    cells = tuple(_read_cells(layout, hints.metric or ""))
    predictions = tuple(_read_predictions(layout)) if "prediction" in layout.roles.parts else ()
    if not cells and predictions:
        cells = tuple(_measure_accuracies(predictions))
    if not any(cell.value is not None for cell in cells) and not predictions:
        raise RequestError(
            f"no scores were recognised in '{rows.name}', which has the columns {', '.join(map(repr, rows.header[:8]))}"
            ". Name the columns, for example --map arm=model,seed=run,value=accuracy"
        )
    by_run = _read_budgets(layout) if layout.pattern is None or layout.pattern.are_tasks else {}
    cells, budgets, tasks = split_tasks(cells, by_run, "" if layout.metric == UNNAMED else layout.metric)
    check_aggregates(layout, cells)
    intervals = read_intervals(layout, hints.spread)
    kind = hints.spread or ("se" if layout.roles.are_standard_errors else "ci" if intervals else None)
    cells, spreads = settle_spreads(cells, rows.caption, hints.num_seeds, kind, layout.has_seeds)
    stated_averages = tuple(read_stated_averages(layout, cells))
    cells, averages = drop_averages(cells)
    cells, unreported = drop_unreported(cells, rows.is_for_readers)
    arms = list(dict.fromkeys([*(cell.arm for cell in cells), *(run.arm for run in predictions)]))
    short = next((row[name] for _, row in rows.rows for name in layout.roles.values if has_last_digits(row[name])), "")
    notation = [f"{short} is read as a mean with an uncertainty of its last digits"] if short else []
    changes = _describe_changes(layout)
    words = (
        *layout.describe(any(hints.metric == cell.metric for cell in cells)),
        *tasks,
        *describe_spreads(cells, spreads),
        *notation,
        *intervals,
        *averages,
        *unreported,
        *changes,
    )
    chosen = _find_baseline(arms, baseline)
    parts = (layout.write_map(), f"differences={difference_names}" if difference_names else "")
    mapped = ",".join(filter(None, parts))
    return ResultTable(
        rows.name, words, cells, chosen, budgets, predictions, mapped, layout.has_seeds, layout.unused,
        tuple(read_stated_summaries(layout, cells)), stated_averages, differences,
    )  # fmt: skip


def _describe_changes(layout: TableLayout) -> list[str]:
    """Say that changes behind scores, such as the one in `77.8 (+0.5)`, are not checked."""
    figures = [parse_figure(row[name]) for _, row in layout.rows.rows for name in layout.roles.values]
    shown = next((figure.change for figure in figures if figure is not None and figure.change), "")
    return [f"changes behind scores, as in '{shown}', are not checked"] if shown else []


def _find_baseline(arms: Sequence[str], asked: str | None) -> str:
    """Return the arm that others are compared with: the given one, one with a usual name, or the first."""
    if asked is not None:
        # `Ours` is enough for `Ours (α=0.5)`, if no other arm begins with this word.
        words = split_words(asked)
        begun = [arm for arm in arms if words and split_words(arm)[: len(words)] == words]
        if asked not in arms and len(begun) != 1:
            hint = f"; these begin with it: {', '.join(begun[:6])}." if begun else closest(asked, arms) or "."
            raise RequestError(f"no arm is named '{asked}'{hint} There are: {', '.join(arms[:12])}")
        return asked if asked in arms else begun[0]
    others = [arm for arm in arms if not {"ours", "proposed"} & {*split_words(arm)}]
    whole = (arm for name in BASELINES for arm in arms if arm.lower() == name)
    usual = (arm for some in (others, arms) for name in BASELINES for arm in some if name in arm.lower())
    return next(whole, None) or next(usual, arms[0] if arms else "")


def _read_cells(layout: TableLayout, asked: str) -> Iterator[Cell]:
    """Read the cells of a table. asked: the metric of --metric, whose arrow also holds for a column of this name."""
    counts, lines = Counter[tuple[str, ...]](), dict[tuple[object, ...], str]()
    for (arm, group, seed), line, row in layout.runs():
        where = layout.rows.locate(line)
        step = parse_number(layout.part("step", row))
        if step is None and "step" in layout.roles.parts:
            raise RequestError(f"{where}: the step must be a number, not '{layout.part('step', row)}'")
        num_examples, num_seeds = (_read_count(where, layout, row, part) for part in ("examples", "num_seeds"))
        for name in layout.roles.values:
            parts = layout.pattern.meanings[name] if layout.pattern is not None else {}
            metric = layout.part("metric", row, parts.get("metric", layout.name_metric(name)))
            metric = add_direction(metric, name)
            metric = add_direction(metric, asked) if are_same_metric(metric, asked) else metric
            run_arm, run_group = parts.get("arm", arm) or "all", join_words(parts.get("group", ""), group)
            run_seed = parts.get("seed", seed)
            if not run_seed:
                # Without a column of seeds, each row is the next run.
                unseeded = run_arm, run_group, metric, str(step)
                counts[unseeded] += 1
                run_seed = str(counts[unseeded])
            figure, place = _read_score(where, name, row[name]), f"{line}, {name}"
            if figure is not None:
                check_interval(where, name, figure)
            value, text = (None, row[name]) if figure is None else (figure.value, figure.text)
            cell = Cell(run_arm, run_group, metric, run_seed, step, value, text, place, num_examples)
            if figure is not None:
                sd, sd_text = _read_spread(where, layout, name, row, figure)
                cell = replace(cell, sd=sd, sd_text=sd_text, num_seeds=num_seeds)
            key = *cell.run, metric, step
            if key in lines:
                raise RequestError(_explain_same_run(layout, lines[key], line, cell))
            lines[key] = line
            yield cell


def _explain_same_run(layout: TableLayout, first: str, second: str, cell: Cell) -> str:
    """Say which rows are the same run, in which columns they differ, and how to tell them apart."""
    rows = dict(layout.rows.rows)
    unused = {*layout.roles.ignored, *layout.roles.budgets}
    differ = [
        name for name in layout.rows.header if name in unused and name and rows[first][name] != rows[second][name]
    ]
    step = "" if cell.step is None else f", step {cell.step:g}"
    run = f"arm '{cell.arm}', seed '{cell.seed}'{step}"
    same = f"{layout.rows.locate(first, second)} are the same run ({run})"
    if not differ:
        scores = [name for name in layout.roles.values if rows[first][name] != rows[second][name]]
        what = (
            f"they differ only in their scores ({list_columns(scores, 3)})" if scores else "they are equal throughout"
        )
        return (
            f"{same}, and no column tells them apart: {what}. If one is a copy, remove it; if they are two runs, give "
            "them different seeds, or add a column in which they differ"
        )
    arm, column = layout.roles.parts.get("arm"), differ[0]
    shown = ", ".join(f"'{name}' ({rows[first][name]}, {rows[second][name]})" for name in differ[:3])
    alone = f", {quote_map(f'arm={arm}+{column}')} if each is an arm of its own" if arm else ""
    return (
        f"{same}; they differ in {shown}. Give {quote_map(f'group={column}')} to compare the arms at each "
        f"{column}{alone}, or {quote_map(f'seed={column}')} if it is the seed"
    )


def _read_score(where: str, name: str, text: str) -> CellFigure | None:
    figure = parse_figure(text)
    if figure is None and not is_empty(text):
        raise RequestError(explain_damage(where, name, text))
    if figure is not None and abs(figure.value) > LARGEST:
        raise RequestError(f"{where}: '{name}' is {text}; values beyond {LARGEST:g} are not accepted")
    return figure


def _read_spread(
    where: str, layout: TableLayout, name: str, row: Mapping[str, str], figure: CellFigure
) -> tuple[float | None, str]:
    """Return the spread beside a mean and its text, in its cell or in a column of its own."""
    column = layout.roles.spreads.get(name)
    if figure.spread is not None or column is None or is_empty(row[column]):
        return figure.spread, figure.spread_text
    spread = parse_number(row[column])
    if spread is None or not 0 <= spread <= LARGEST:
        raise RequestError(f"{where}: '{column}' must hold a standard deviation, not '{row[column]}'")
    return spread, row[column]


def _read_count(where: str, layout: TableLayout, row: Mapping[str, str], part: str) -> int | None:
    text = layout.part(part, row)
    value = parse_number(text)
    if value is None and is_empty(text):
        return None
    if value is None or value != int(value) or value < 1:
        what = "evaluation examples" if part == "examples" else "seeds"
        raise RequestError(f"{where}: '{layout.roles.parts[part]}' must hold a number of {what}, not '{text}'")
    return int(value)


def _read_budgets(layout: TableLayout) -> dict[Run, dict[str, str]]:
    """Return what each run was given: budgets, and the number of evaluation examples of each metric."""
    budgets = dict[Run, dict[str, str]]()
    in_columns = [""] if layout.pattern is None else [parts["group"] for parts in layout.pattern.meanings.values()]
    for (arm, group, seed), _, row in layout.runs():
        amounts = {name: row[name] for name in layout.roles.budgets}
        if "examples" in layout.roles.parts:
            metric = f" for {layout.part('metric', row)}" if "metric" in layout.roles.parts else ""
            amounts[f"{layout.roles.parts['examples']}{metric}"] = layout.part("examples", row)
        for name in in_columns:
            budgets.setdefault((arm, join_words(name, group), seed), {}).update(amounts)
    return budgets


def _read_predictions(layout: TableLayout) -> Iterator[RunPredictions]:
    for (arm, group, seed), rows in group_cells(layout.runs(), lambda row: row[0]).items():
        predictions = tuple(layout.part("prediction", row) for _, _, row in rows)
        labels = tuple(layout.part("label", row) for _, _, row in rows) if "label" in layout.roles.parts else ()
        yield RunPredictions(arm or "all", group, seed or "1", predictions, labels)


def _measure_accuracies(predictions: Sequence[RunPredictions]) -> Iterator[Cell]:
    for run in predictions:
        if run.labels:
            num_right = sum(given == gold for given, gold in zip(run.predictions, run.labels, strict=True))
            share = num_right / len(run.labels)
            place = f"the predictions of arm '{run.arm}', seed '{run.seed}'"
            yield Cell(run.arm, run.group, "accuracy", run.seed, None, share, repr(share), place, len(run.labels))
