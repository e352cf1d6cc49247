"""Averages over tasks that a table states itself: a column `Avg` beside tasks, or a row `Average` below them."""

from collections.abc import Iterator, Sequence

from .column_names import is_aggregate
from .figure import parse_figure
from .layout import TableLayout
from .metrics import split_words
from .patterns import MEANS
from .table import AveragedScore, Cell, StatedAverage, join_words


def read_stated_averages(layout: TableLayout, cells: Sequence[Cell]) -> Iterator[StatedAverage]:
    """Yield the averages of a table, each with the scores of its row, or of its arm, that it may be over."""
    yield from _read_columns(layout)
    yield from _read_groups(cells)


def _is_average(name: str) -> bool:
    return is_aggregate(name) and all(word in MEANS for word in split_words(name))


def _read_columns(layout: TableLayout) -> Iterator[StatedAverage]:
    names = [name for name in layout.aggregates if _is_average(name)]
    if not names or (layout.pattern is not None and not layout.pattern.are_tasks) or "metric" in layout.roles.parts:
        return
    header = layout.rows.header
    for (arm, group, seed), line, row in layout.runs():
        for name in names:
            figure, scores = parse_figure(row[name]), []
            for column in layout.roles.values:
                score = parse_figure(row[column])
                if score is not None:
                    is_left = header.index(column) < header.index(name)
                    scores.append(AveragedScore(column, score.text, score.value, is_left))
            if figure is not None and len(scores) == len(layout.roles.values):
                title = join_words(arm, group, f"seed {seed}" if seed else "")
                yield StatedAverage(name, title, figure.text, figure.value, f"{line}, {name}", tuple(scores))


def _read_groups(cells: Sequence[Cell]) -> Iterator[StatedAverage]:
    averages = [cell for cell in cells if any(map(_is_average, cell.group.split(", "))) and cell.value is not None]
    by_run: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells if averages else ():
        by_run.setdefault((cell.arm, cell.metric, cell.seed, cell.step), []).append(cell)
    for average in averages:
        parts = average.group.split(", ")
        scores = []
        for cell in by_run[average.arm, average.metric, average.seed, average.step]:
            names = cell.group.split(", ")
            is_other = len(names) == len(parts) and not any(map(is_aggregate, names))
            if is_other and all(name == part for name, part in zip(names, parts, strict=True) if not _is_average(part)):
                scores.append(cell)
        if all(cell.value is not None for cell in scores):
            over = tuple(AveragedScore(cell.group, cell.text, cell.number, True) for cell in scores)
            yield StatedAverage(average.group, average.arm, average.text, average.number, average.place, over)
