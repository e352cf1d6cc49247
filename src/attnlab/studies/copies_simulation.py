"""How often the check for repeated values reports something in random tables without copies, and with one copied arm,
run or seed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from attnlab.statistics.draws import Rng
from attnlab.statistics.simulation import Case, Path

from .integrity.checks.repetition import check_repetition
from .integrity.tables.metrics import Values
from .integrity.tables.table import Cell, ResultTable

PART, RUN_PART = "copied values", "copied runs"
MEAN = 82.0
"""An accuracy in percent."""
SDS, SEEDS, ARMS, EXAMPLES, TASKS = (0.2, 2.0), (3, 10), (2, 10), (100, 1000), (2, 4)
"""The smallest and largest of what is drawn for each table; SDs and numbers of examples are log-uniform."""
SHARED = 0.9
"""The correlation of arms whose seeds share initial weights and data order."""
RUN_ARMS, RUN_TASKS, RUN_EXAMPLES, RUN_DECIMALS = (2, 4), (1, 10), (50, 10_000), (1, 3)
"""The smallest and largest of what is drawn for a table of runs in several tasks."""
RUN_SHARED, RUN_PAIRED = (0.0, 0.95), (0.0, 0.5, 0.9)
"""Correlations: of the tasks of one run, and of the runs of one seed in several arms."""
SEED_ARMS, SEED_SEEDS, SEED_SDS, SEED_SHARED = (3, 10), (4, 10), (0.1, 2.0), (0.0, 0.5, 0.9, 0.95)
"""What is drawn for a table of one task with copied seeds; the last are correlations of arms."""


def list_cases() -> Iterator[Case]:
    """Yield tables of accuracies in percent: with a copied arm, a copied run, or a copied seed."""
    yield from _list_arm_cases()
    yield from _list_run_cases()
    for what, bound, effect, is_coarse in (
        ("3 to 10 arms, 1 or 2 decimals", 0.001, 0, False),
        ("3 to 10 arms, 100 to 1000 examples", 0.001, 0, True),
        ("3 to 10 arms, 2 decimals", 0.001, 1, False),
    ):
        finds = partial(find_fault, draw=partial(draw_seeds, is_coarse=is_coarse))
        yield Case(RUN_PART, f"copied seeds: {what}, a fault", "4 to 10", finds, "", bound, effect, cost=5)


def _list_run_cases() -> Iterator[Case]:
    for what, bound, draw, is_note, effect, cost in (
        ("1 to 10 tasks, a fault", 0.001, draw_runs, False, 0, 5),
        ("1 to 10 tasks, a fault or a note", 0.05, draw_runs, True, 0, 5),
        ("4 tasks, 2 decimals, a fault", 0.001, partial(draw_runs, num_tasks=4, decimals=2), False, 1, 10),
        ("8 tasks, 2 decimals, a fault", 0.001, partial(draw_runs, num_tasks=8, decimals=2), False, 1, 10),
    ):
        finds = partial(find_fault, draw=draw, is_note=is_note)
        yield Case(RUN_PART, f"copied runs: {what}", "3 to 10", finds, "", bound, effect, cost)


def _list_arm_cases() -> Iterator[Case]:
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


def find_fault(path: Path, rng: Rng, effect: float, *, draw: Callable[..., ResultTable], is_note: bool = False) -> bool:
    """Draw a table, copy an arm or a run if there is an effect, and tell whether repeated values are a fault in it.

    is_note: a note is enough.
    """
    return any(finding.is_fault or is_note for finding in check_repetition(draw(rng, is_copied=bool(effect))))


def draw_runs(rng: Rng, *, is_copied: bool, num_tasks: int = 0, decimals: int = 0) -> ResultTable:
    """Draw accuracies of runs in several tasks, with the sampling of each evaluation set. Drawn too if 0.

    A copied run is that of another seed of its arm or of the same seed in another arm.
    """
    limits = (RUN_ARMS, SEEDS, RUN_TASKS, RUN_DECIMALS)
    num_arms, num_seeds, *drawn = (int(rng.integers(low, high + 1)) for low, high in limits)
    num_tasks, decimals = num_tasks or drawn[0], decimals or drawn[1]
    shared, paired = rng.uniform(*RUN_SHARED), float(rng.choice(RUN_PAIRED))
    # Both correlations hold at once: what a run has in common, and what is of one task, are alike in paired runs.
    run = _draw_paired(rng, num_arms, num_seeds, paired)
    runs: dict[tuple[int, int], list[str]] = {(arm, seed): [] for arm in range(num_arms) for seed in range(num_seeds)}
    for _ in range(num_tasks):
        sd, num_examples = _draw_log_uniform(rng, SDS), round(_draw_log_uniform(rng, RUN_EXAMPLES))
        own = _draw_paired(rng, num_arms, num_seeds, paired)
        means = rng.uniform(45, 95) + sd * rng.standard_normal((num_arms, 1))
        values = np.clip(means + sd * (np.sqrt(shared) * run + np.sqrt(1 - shared) * own), 1, 99)
        values = 100 * np.round(values * num_examples / 100) / num_examples
        for (arm, seed), value in np.ndenumerate(values):
            runs[arm, seed].append(f"{value:.{decimals}f}")
    if is_copied:
        runs[1, 1] = runs[1, 0] if rng.random() < 0.5 else runs[0, 1]
    cells = [
        Cell(f"arm {arm}", "", f"task {task}", str(seed), None, float(text), text, f"{arm}, {seed}, {task}")
        for (arm, seed), texts in runs.items()
        for task, text in enumerate(texts)
    ]
    return ResultTable("simulated", (), tuple(cells), "arm 0")


def _draw_paired(rng: Rng, num_arms: int, num_seeds: int, correlation: float) -> Values:
    own, shared = rng.standard_normal((num_arms, num_seeds)), rng.standard_normal(num_seeds)
    drawn: Values = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared
    return drawn


def draw_seeds(rng: Rng, *, is_copied: bool, is_coarse: bool = False) -> ResultTable:
    """Draw accuracies of one task whose arms share a part of what seeds vary by.

    is_coarse: of 100 to 1000 examples. A copied seed has two decimals.
    """
    num_arms, num_seeds, decimals = (
        int(rng.integers(low, high + 1)) for low, high in (SEED_ARMS, SEED_SEEDS, (1, 2))
    )  # fmt: skip
    sd, shared = _draw_log_uniform(rng, SEED_SDS), float(rng.choice(SEED_SHARED))
    values = MEAN + rng.standard_normal((num_arms, 1)) + sd * _draw_paired(rng, num_arms, num_seeds, shared)
    values = np.minimum(values, 99)
    if is_coarse:
        num_examples = round(_draw_log_uniform(rng, EXAMPLES))
        values = 100 * np.round(values * num_examples / 100) / num_examples
    if is_copied:
        decimals, values[:, -1] = 2, values[:, 0]
    texts = {key: f"{value:.{decimals}f}" for key, value in np.ndenumerate(values)}
    cells = [
        Cell(f"arm {arm}", "", "accuracy", str(seed), None, float(text), text, f"{arm}, {seed}")
        for (arm, seed), text in texts.items()
    ]
    return ResultTable("simulated", (), tuple(cells), "arm 0")


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
