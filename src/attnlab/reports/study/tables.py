"""The results as tables: CSV with a line for every run or for every arm, and Markdown.

Spreadsheets read a text that begins with = + - or @ as a formula, so such a text gets an apostrophe.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from attnlab.studies.answers.study_folder import Record
from attnlab.studies.answers.target import TargetAnswer
from attnlab.visible import make_visible

from .cells import COLUMNS, get_comparison, is_not_comparable
from .headline import Headline
from .results import PhaseResults, find_status, read_number
from .trainingset import read_training_figures

FORMULA = ("=", "+", "-", "@")
RUN = ("phase", "size", "arm", "seed", "run", "status", "step")
TRAINED_ON = "train_"
"""The prefix of figures on the training data."""
COST = ("seconds", "operations", "tokens", "parameters", "trained")
SUMMARY = (
    "phase", "size", "arm", "is_baseline", "figure", "mean", "sd", "seeds", "failed", "difference", "low", "high",
    "level", "p", "method", "hedges_g", "rho", "is_comparable", "verdict", "stability", "tokens_per_second", "seconds",
    "operations", "parameters", "trained",
)  # fmt: skip
MARKDOWN_COLUMNS = (
    "arm",
    "phase",
    "size",
    "figure",
    "mean",
    "SD",
    "seeds",
    "failed",
    "difference",
    "interval",
    "verdict",
)
MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


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
            *(result.get(name) for name in ("seconds", "operations", "tokens")),
            counts.get("total"), counts.get("trained"),
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
            row.tokens_per_second, row.seconds, row.operations, row.count_parameters("total"),
            row.count_parameters("trained"),
        ])  # fmt: skip
    return write_csv(SUMMARY, rows)


def write_targets(targets: Sequence[TargetAnswer]) -> str:
    """Write a line for every arm and target."""
    rows = [[*list(vars(one).values())[:-1], *_spread_exchange(one)] for one in targets]
    names = [one.name for one in fields(TargetAnswer)][:-1]
    return write_csv([*names, "change_of_steps", "low", "high"], rows)


def _spread_exchange(target: TargetAnswer) -> list[float | None]:
    return [None] * 3 if target.exchange is None else [target.exchange[0], *target.exchange[1]]


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
    text = make_visible(cell.replace("\r", " "))
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def write_markdown(headline: Headline, places: Sequence[PhaseResults]) -> str:
    """Write the results as Markdown: question, state, table, answers over sizes, horizons and tasks, and notes."""
    rows = [[COLUMNS[name](row) for name in MARKDOWN_COLUMNS] for place in places for row in place.rows]
    marks = [] if not rows else ["---:" if cell.is_number else "---" for cell in rows[0]]
    lines = [
        f"**{_escape_markdown(headline.question)}**", "", _escape_markdown(headline.state), "",
        f"| {' | '.join(MARKDOWN_COLUMNS)} |", f"| {' | '.join(marks)} |",
        *(f"| {' | '.join(_escape_markdown(cell.text) for cell in row)} |" for row in rows),
    ]  # fmt: skip
    lines.append("")
    for sentence in headline.joint:
        place = _escape_markdown(f"{sentence.arm}, {sentence.where}")
        lines.append(f"- {place}: {_escape_markdown(sentence.verdict)} {_escape_markdown(sentence.numbers)}".rstrip())
    lines += [f"- {_escape_markdown(f'{names}: {line}')}" for names, line in headline.arms]
    lines += [f"- {_escape_markdown(note)}" for note in headline.list_notes()]
    return "\n".join(lines).rstrip() + "\n"


def _escape_markdown(text: str) -> str:
    return MARKDOWN_SIGNS.sub(r"\\\1", make_visible(" ".join(text.split())))
