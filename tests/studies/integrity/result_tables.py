"""Result tables made for tests: clean ones of every kind, and ways to write them."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.statistics import Comparison
from attnlab.studies.integrity import Judgement, JudgeOptions, judge, read_table
from attnlab.studies.integrity.analysis import ComparisonRow

Record = dict[str, Any]
Write = Callable[..., str]
STEPS = (500, 1000, 1500, 2000)


@dataclass(frozen=True)
class Recipe:
    """What a clean table is like. decimals: what values are rounded to, None for every digit.

    spread, noise: how far the shares of right answers are apart from seed to seed, and from step to step.
    """

    seed: int = 0
    num_seeds: int = 5
    steps: Sequence[int] = ()
    groups: Sequence[str] = ("small",)
    arms: Sequence[str] = ("baseline", "cosine")
    num_examples: int = 10_570
    decimals: int | None = None
    percent: bool = True
    metrics: Sequence[str] = field(default=("em", "f1"))
    spread: float = 0.05
    noise: float = 0.01


def make_records(recipe: Recipe) -> list[Record]:
    """Draw runs that learn, differ by seed, and share nothing else; one record for each value."""
    rng = np.random.default_rng(recipe.seed)
    records = []
    for group in recipe.groups:
        for arm in recipe.arms:
            for seed in range(recipe.num_seeds):
                level = 0.6 + recipe.spread * rng.standard_normal()
                for number, step in enumerate(recipe.steps or (None,)):
                    learned = 1 - 0.5 ** (number + 1) if recipe.steps else 1.0
                    share = float(np.clip(level * learned + recipe.noise * rng.standard_normal(), 0.01, 0.98))
                    right = int(rng.binomial(recipe.num_examples, share)) / recipe.num_examples
                    for metric in recipe.metrics:
                        value = figure(metric, right, recipe, rng)
                        whose = {"arm": arm, "size": group, "seed": seed, "step": step, "metric": metric}
                        records.append(whose | {"value": value})
    return records


def figure(metric: str, right: float, recipe: Recipe, rng: np.random.Generator) -> float:
    scale = 100 if recipe.percent else 1
    if metric in ("em", "accuracy"):
        value = scale * right
    elif metric == "loss":
        value = 2 - 2 * right + 0.02 * float(rng.standard_normal())
    else:
        value = scale * (right + (1 - right) * (0.3 + 0.02 * float(rng.random())))
    return value if recipe.decimals is None else round(value, recipe.decimals)


def show(value: Any, decimals: int | None) -> str:
    if value is None:
        return ""
    return repr(value) if decimals is None or not isinstance(value, float) else f"{value:.{decimals}f}"


def write_long(path: Path, records: Sequence[Record], decimals: int | None = None) -> str:
    """Write one value a row."""
    names = [name for name in records[0] if any(record[name] is not None for record in records)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(
            [
                [show(record[name], decimals) if name == "value" else record[name] for name in names]
                for record in records
            ]
        )
    return str(path)


def write_wide(path: Path, records: Sequence[Record], decimals: int | None = None) -> str:
    """Write one step a row, with arm, size, metric and seed in the names of the columns."""
    steps = list(dict.fromkeys(record["step"] for record in records))
    cells = {(record["step"], _column(record)): show(record["value"], decimals) for record in records}
    names = list(dict.fromkeys(_column(record) for record in records))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["steps", *names] if steps != [None] else names)
        for step in steps:
            row = [cells.get((step, name), "") for name in names]
            writer.writerow([step, *row] if step is not None else row)
    return str(path)


def _column(record: Record) -> str:
    return f"{record['arm']}_{record['size']}_{record['metric']}_{record['seed']}"


WRITERS: list[Write] = [write_long, write_wide]


def write_text(tmp_path: Path, text: str) -> str:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_rows(tmp_path: Path, header: str, rows: Sequence[str]) -> str:
    return write_text(tmp_path, "\n".join([header, *rows]))


def draw_records(
    means: dict[str, float], num_seeds: int = 8, sd: float = 0.3, seed: int = 0, metric: str = "f1"
) -> list[Record]:
    """Draw normal values around the mean of each arm."""
    rng = np.random.default_rng(seed)
    return [
        {"arm": arm, "size": "s", "seed": number, "step": None, "metric": metric, "value": mean + sd * float(noise)}
        for arm, mean in means.items() for number, noise in enumerate(rng.standard_normal(num_seeds))
    ]  # fmt: skip


def select(records: Sequence[Record], **fields: Any) -> list[Record]:
    return [record for record in records if all(record[name] == value for name, value in fields.items())]


def judge_file(path: str, **options: Any) -> Judgement:
    return judge(read_table(path), JudgeOptions(**options))


def list_faults(judgement: Judgement) -> list[str]:
    return [finding.check for finding in judgement.faults]


def get_only_row(judgement: Judgement) -> ComparisonRow:
    (row,) = judgement.analyses[-1].rows
    return row


def get_comparison(row: ComparisonRow) -> Comparison:
    assert row.comparison is not None
    return row.comparison
