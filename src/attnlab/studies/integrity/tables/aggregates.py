"""Rows that hold a mean over seeds among rows of single seeds: read as runs, they would be wrong."""

from collections.abc import Sequence

from attnlab.errors import RequestError

from ..finding import list_first
from .columns import MEANS, SDS
from .figure import parse_figure
from .layout import TableLayout
from .table import Cell, group_cells

NAMES = frozenset({*MEANS, *SDS, "median", "all"})
"""What a column of seeds holds in a row that summarises seeds."""
WAY_ON = "keep the rows of single seeds only, or give every arm as one row with its mean, SD and n_seeds"


def check_aggregates(layout: TableLayout, cells: Sequence[Cell]) -> None:
    """Refuse a table in which some rows are single seeds and others are means over seeds."""
    if "seed" in layout.roles.parts:
        _check_seeds(layout)
    by_arm = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.metric, cell.step)).values()
    runs = [cell for of_arm in by_arm if len(of_arm) > 1 for cell in of_arm if cell.sd is None]
    means = [cell for cell in cells if cell.sd is not None and cell.value is not None]
    if any(cell.value is not None for cell in runs) and means:
        shown, table = list_first([f"{cell.arm} ({cell.place})" for cell in means], 3), layout.rows.name
        raise RequestError(
            f"'{table}' has rows of single runs, such as {runs[0].place}, and rows of means with ±: {shown}; {WAY_ON}"
        )


def _check_seeds(layout: TableLayout) -> None:
    """Refuse rows with a score whose seed is empty where others have one, or is a word such as `mean`."""
    seeds: dict[int, str] = {}
    for (_, _, seed), number, row in layout.runs():
        if any(parse_figure(row[name]) is not None for name in layout.roles.values):
            seeds[number] = seed.strip()
    lacking = [number for number, seed in seeds.items() if not seed or seed.lower() in NAMES]
    if lacking and len(lacking) < len(seeds):
        word = seeds[lacking[0]]
        column, what = layout.roles.parts["seed"], f"'{word}'" if word else "empty"
        where = f"line{'s' if len(lacking) > 1 else ''} {list_first([str(number) for number in lacking])}"
        raise RequestError(
            f"'{layout.rows.name}': '{column}' is {what} in {where} and names a seed in the other rows. If these rows "
            f"are runs, fill in their seeds; if they are means over seeds, {WAY_ON}"
        )
