"""Rows that hold a mean over seeds or over tasks among others, and cells of means that nobody reported.

Read as runs, they would be wrong.
"""

from collections.abc import Sequence

from attnlab.errors import RequestError

from .average_columns import list_group_averages
from .column_names import SDS, is_aggregate
from .figure import is_unreported, parse_figure
from .layout import TableLayout
from .patterns import MEANS
from .table import Cell, group_cells

NAMES = frozenset({*MEANS, *SDS, "median", "all"})
"""What a column of seeds holds in a row that summarises seeds."""
MAX_SHOWN = 4
WAY_ON = "keep the rows of single seeds only, or give every arm as one row with its mean, SD and n_seeds"


def check_aggregates(layout: TableLayout, cells: Sequence[Cell]) -> None:
    """Refuse a table in which some rows are single seeds and others are means over seeds."""
    if "seed" in layout.roles.parts:
        _check_seeds(layout)
    for of_metric in group_cells(cells, lambda cell: cell.metric).values():
        _check_spreads(layout.rows.name, [cell for cell in of_metric if cell.value is not None])


def drop_averages(cells: Sequence[Cell]) -> tuple[tuple[Cell, ...], list[str]]:
    """Return the cells without a group such as `Average` beside other groups, and what is dropped, in words."""
    groups = list(dict.fromkeys(cell.group for cell in cells))
    names = list_group_averages(cells)
    averages = [group for group in groups if any(is_aggregate(part) or part in names for part in group.split(", "))]
    if not averages or len(groups) - len(averages) < 2:
        return tuple(cells), []
    words = [f"not compared, as a mean of other groups: {_list(list(map(repr, averages)))}"]
    return tuple(cell for cell in cells if cell.group not in averages), words


def drop_unreported(cells: Sequence[Cell], is_for_readers: bool) -> tuple[tuple[Cell, ...], list[str]]:
    """Return a table of means without cells such as `–` or `OOM`, which are no failed runs, and what is dropped."""
    by_arm = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.metric, cell.step)).values()
    are_means = is_for_readers or any(cell.is_mean for cell in cells)
    empty = [cell for cell in cells if cell.value is None and is_unreported(cell.text)]
    if not empty or not are_means or any(len(of_arm) > 1 for of_arm in by_arm):
        return tuple(cells), []
    dropped = {cell.place for cell in empty}
    words = [f"not reported, and so not compared: {_list([f'{cell.title} ({cell.place})' for cell in empty])}"]
    return tuple(cell for cell in cells if cell.place not in dropped), words


def _check_spreads(table: str, cells: Sequence[Cell]) -> None:
    """Refuse rows with ± that stand alone beside rows of runs without; runs may each have a ± of their own."""
    by_arm = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.step)).values()
    runs = [cell for of_arm in by_arm if len(of_arm) > 1 for cell in of_arm if cell.sd is None]
    with_spread = [[cell for cell in of_arm if cell.sd is not None] for of_arm in by_arm]
    means = [of_arm[0] for of_arm in with_spread if len(of_arm) == 1]
    if runs and means:
        shown = _list([f"{cell.arm} ({cell.place})" for cell in means])
        raise RequestError(
            f"'{table}' has rows of single runs, such as {runs[0].place}, and rows of means with ±: {shown}; {WAY_ON}"
        )


def _check_seeds(layout: TableLayout) -> None:
    """Refuse rows with a score whose seed is empty where others have one, or is a word such as `mean`."""
    seeds: dict[str, str] = {}
    for (_, _, seed), line, row in layout.runs():
        if any(parse_figure(row[name]) is not None for name in layout.roles.values):
            seeds[line] = seed.strip()
    lacking = [line for line, seed in seeds.items() if not seed or seed.lower() in NAMES]
    if lacking and len(lacking) < len(seeds):
        word = seeds[lacking[0]]
        column, what = layout.roles.parts["seed"], f"'{word}'" if word else "empty"
        raise RequestError(
            f"'{layout.rows.name}': '{column}' is {what} in {_list(lacking)} and names a seed in the other rows. "
            f"If these rows are runs, fill in their seeds; if they are means over seeds, {WAY_ON}"
        )


def _list(items: Sequence[str]) -> str:
    more = f" and {len(items) - MAX_SHOWN} more" if len(items) > MAX_SHOWN else ""
    return f"{', '.join(items[:MAX_SHOWN])}{more}"
