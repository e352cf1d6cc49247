"""How often the check for repeated values reports a fault in random tables without copies, and with one copied arm."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from attnlab.statistics.draws import Rng
from attnlab.statistics.simulation import Case, Path

from .integrity.checks.repetition import check_repetition
from .integrity.tables.table import Cell, ResultTable

PART = "copied values"
MEAN = 82.0
"""An accuracy in percent."""
SDS, SEEDS, ARMS, EXAMPLES, TASKS = (0.2, 2.0), (3, 10), (2, 10), (100, 1000), (2, 4)
"""The smallest and largest of what is drawn for each table; SDs and numbers of examples are log-uniform."""
SHARED = 0.9
"""The correlation of arms whose seeds share initial weights and data order."""


def list_cases() -> Iterator[Case]:
    """Yield tables of accuracies in percent, with SDs of 0.2 to 2, 3 to 10 seeds and 2 to 10 arms."""
    for what, draw in (
        ("with 2 decimals", partial(draw_table, decimals=2)),
        ("with 1 decimal", partial(draw_table, decimals=1)),
        ("of 100 to 1000 examples, 2 decimals", partial(draw_table, decimals=2, has_examples=True)),
        ("of 100 to 1000 examples, 1 decimal", partial(draw_table, decimals=1, has_examples=True)),
        ("of 100 to 1000 examples, given", partial(draw_table, decimals=2, has_examples=True, names_examples=True)),
        (f"with correlation {SHARED}, 2 decimals", partial(draw_table, decimals=2, correlation=SHARED)),
        ("of 2 to 4 tasks of 100 to 1000 examples", partial(draw_tasks, correlation=0.0)),
        (f"of 2 to 4 tasks, correlation {SHARED}", partial(draw_tasks, correlation=SHARED)),
    ):
        yield Case(
            PART,
            f"copied arms: accuracies {what}",
            "3 to 10",
            partial(find_fault, draw=draw),
            "",
            0.01,
            effect=1,
            cost=4,
        )


def find_fault(path: Path, rng: Rng, effect: float, *, draw: "partial[ResultTable]") -> bool:
    """Draw a table, copy one arm if there is an effect, and tell whether repeated values are a fault in it."""
    return any(finding.is_fault for finding in check_repetition(draw(rng, is_copied=bool(effect))))


def draw_tasks(rng: Rng, *, is_copied: bool, correlation: float) -> ResultTable:
    """Draw accuracies of the same arms and seeds in several tasks, each with its own known number of examples."""
    num_seeds, num_arms = (int(rng.integers(low, high + 1)) for low, high in (SEEDS, ARMS))
    tables = [
        draw_table(rng, is_copied=is_copied, decimals=2, has_examples=True, names_examples=True,
                   correlation=correlation, num_seeds=num_seeds, num_arms=num_arms)
        for _ in range(int(rng.integers(TASKS[0], TASKS[1] + 1)))
    ]  # fmt: skip
    cells = [
        replace(cell, group=f"task {number}", place=f"task {number}, {cell.place}")
        for number, table in enumerate(tables)
        for cell in table.cells
    ]
    return ResultTable("simulated", (), tuple(cells), "arm 0")


def draw_table(
    rng: Rng, *, is_copied: bool, decimals: int, has_examples: bool = False, names_examples: bool = False,
    correlation: float = 0.0, num_seeds: int = 0, num_arms: int = 0,
) -> ResultTable:  # fmt: skip
    """Draw accuracies of arms with equal means. num_seeds, num_arms: drawn too if 0."""
    sd, num_examples = _draw_log_uniform(rng, SDS), round(_draw_log_uniform(rng, EXAMPLES))
    drawn = [int(rng.integers(low, high + 1)) for low, high in (SEEDS, ARMS)]
    num_seeds, num_arms = num_seeds or drawn[0], num_arms or drawn[1]
    own, shared = rng.standard_normal((num_arms, num_seeds)), rng.standard_normal(num_seeds)
    values = MEAN + sd * (np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared)
    if has_examples:
        values = 100 * np.round(values * num_examples / 100) / num_examples
    if is_copied:
        values[1] = values[0]
    given = num_examples if names_examples else None
    cells = [
        Cell(
            f"arm {arm}",
            "",
            "accuracy",
            str(seed),
            None,
            round(value, decimals),
            f"{value:.{decimals}f}",
            f"{arm}, {seed}",
            given,
        )
        for (arm, seed), value in np.ndenumerate(np.minimum(values, 99.9))
    ]
    return ResultTable("simulated", (), tuple(cells), "arm 0")


def _draw_log_uniform(rng: Rng, limits: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(limits))))
