"""Averages over tasks that a table states itself: a column `Avg` beside tasks, or a row `Average` below them."""

from collections.abc import Iterator, Sequence

from .average_columns import is_mean, list_columns_of_average, list_group_averages, state_average
from .column_names import is_aggregate
from .layout import TableLayout
from .table import AveragedScore, Cell, StatedAverage, join_words


def read_stated_averages(layout: TableLayout, cells: Sequence[Cell]) -> Iterator[StatedAverage]:
    """Yield the averages of a table, each with the scores of its row, or of its arm, that it may be over."""
    yield from _read_columns(layout)
    yield from _read_groups(cells)


def _read_columns(layout: TableLayout) -> Iterator[StatedAverage]:
    names = [name for name in layout.aggregates if is_mean(name)]
    if not names or (layout.pattern is not None and not layout.pattern.are_tasks) or "metric" in layout.roles.parts:
        return
    values = layout.roles.values
    for (arm, group, seed), line, row in layout.runs():
        title = join_words(arm, group, f"seed {seed}" if seed else "")
        for name in names:
            over = list_columns_of_average(name, values) or values
            average = state_average(name, line, row, over, layout.rows.header, title)
            if average is not None:
                yield average


def _read_groups(cells: Sequence[Cell]) -> Iterator[StatedAverage]:
    names = list_group_averages(cells)
    averages = [cell for cell in cells if {*cell.group.split(", ")} & names and cell.value is not None]
    by_run: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells if averages else ():
        by_run.setdefault((cell.arm, cell.metric, cell.seed, cell.step), []).append(cell)
    for average in averages:
        parts = average.group.split(", ")
        scores = []
        for cell in by_run[average.arm, average.metric, average.seed, average.step]:
            others = cell.group.split(", ")
            is_other = len(others) == len(parts) and not any(is_aggregate(other) or other in names for other in others)
            if is_other and all(other == part for other, part in zip(others, parts, strict=True) if part not in names):
                scores.append(cell)
        if all(cell.value is not None for cell in scores):
            over = tuple(AveragedScore(cell.group, cell.text, cell.number, True) for cell in scores)
            yield StatedAverage(average.group, average.arm, average.text, average.number, average.place, over)
