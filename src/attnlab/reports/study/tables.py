"""The results as CSV: one line for every run, and one for every arm in every phase and size.

Spreadsheets read a text that begins with = + - or @ as a formula, so such a text gets an apostrophe.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.studies.answers.study_folder import Record

from .cells import get_comparison, is_not_comparable
from .results import PhaseResults, find_status, read_number
from .trainingset import read_training_figures

FORMULA = ("=", "+", "-", "@")
RUN = ("phase", "size", "arm", "seed", "run", "status", "step")
TRAINED_ON = "train_"
"""The prefix of figures on the training data."""
COST = ("seconds", "tokens", "parameters", "trained")
SUMMARY = (
    "phase", "size", "arm", "is_baseline", "figure", "mean", "sd", "seeds", "failed", "difference", "low", "high",
    "level", "p", "method", "hedges_g", "rho", "is_comparable", "verdict", "stability", "tokens_per_second", "seconds",
    "parameters", "trained",
)  # fmt: skip


def write_per_seed(record: Record) -> str:
    """Write a line for every run: its status, its last figures on evaluation and training data, and its cost."""
    lasts = {id: row.result.get("last") or {} for id, row in record.results.items()}
    figures = sorted({name for last in lasts.values() for name in last.get("figures", {})})
    on_training = {id: read_training_figures(record.ledger, id) for id in record.results}
    training_names = sorted({name for values in on_training.values() for name in values})
    rows = []
    for run in record.runs:
        row = record.results.get(run.id)
        result: Mapping[str, Any] = {} if row is None else row.result
        counts = result.get("parameters", {})
        values = lasts.get(run.id, {}).get("figures", {})
        rows.append([
            run.phase, run.size, run.arm, run.seed, run.id, find_status(record, run), result.get("step"),
            *(values.get(name) for name in figures),
            *(on_training.get(run.id, {}).get(name) for name in training_names),
            result.get("seconds"), result.get("tokens"), counts.get("total"), counts.get("trained"),
        ])  # fmt: skip
    return write_csv([*RUN, *figures, *(f"{TRAINED_ON}{name}" for name in training_names), *COST], rows)


def write_summary(places: Sequence[PhaseResults]) -> str:
    """Write a line for every arm: mean, SD, difference, interval, p and verdict; unknown values are empty."""
    rows = []
    for row in (row for place in places for row in place.rows):
        comparison, means = get_comparison(row), row.summary
        numbers: list[Any] = [None] * 8
        if comparison is not None:
            numbers = [
                comparison.difference, *comparison.interval, comparison.level, comparison.p, comparison.method,
                comparison.effects.hedges_g, comparison.rho,
            ]  # fmt: skip
        rows.append([
            row.phase, row.size, row.arm, row.is_baseline, row.figure, means.mean, means.sd, means.n, row.num_lost,
            *numbers, None if row.answer is None else not is_not_comparable(row),
            None if row.answer is None else row.answer.verdict, None if comparison is None else comparison.stability,
            row.tokens_per_second, row.seconds, row.count_parameters("total"), row.count_parameters("trained"),
        ])  # fmt: skip
    return write_csv(SUMMARY, rows)


def write_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Write rows under their names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_escape_formula(name) for name in header])
    writer.writerows([[_escape_formula(cell) for cell in row] for row in rows])
    return text.getvalue()


def _escape_formula(cell: Any) -> Any:
    # NaN and infinities are empty cells.
    if cell in ("NaN", "Infinity", "-Infinity") or (isinstance(cell, float) and read_number(cell) is None):
        return ""
    if not isinstance(cell, str):
        return cell
    # The writer quotes a line feed, but not a carriage return, which readers treat as the end of a line.
    text = cell.replace("\r", " ")
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text
