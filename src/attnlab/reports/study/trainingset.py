"""Figures on training examples beside those on evaluation examples, over the same seeds.

Runs of a phase with `num_scored` log them after the last step, as they log an evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.statistics.formatting import show_value
from attnlab.studies.ledger.database import Ledger

from .cells import TableCell, make_number_cell
from .history import NO_FIGURES, History, is_number
from .results import summarize

KIND = "training set"
"""The kind of such a line in a ledger."""


@dataclass(frozen=True)
class TrainingTable:
    """Means over seeds: a row for every arm, two cells for every figure, on training and evaluation examples."""

    title: str
    figures: Sequence[str]
    rows: Sequence[tuple[str, Sequence[TableCell]]]


def make_training_table(history: History) -> TrainingTable | None:
    """Return the figures on training examples beside those of the last evaluation, over the same seeds."""
    known = {key: lines[-1] for key, lines in history.read_lines(KIND).items()}
    if not known:
        return None
    held_out = {key: lines[-1] for key, lines in history.read_lines("evaluation").items() if key in known}
    names = sorted(
        dict.fromkeys(name for line in known.values() for name in _select_figures(line)),
        key=lambda name: name != history.place.figure,
    )
    rows = [
        (row.arm, [_make_mean_cell(lines, row.arm, name) for name in names for lines in (known, held_out)])
        for row in history.place.rows if any(arm == row.arm for arm, _ in known)
    ]  # fmt: skip
    return TrainingTable(history.place.title, names, rows)


def _make_mean_cell(lines: Mapping[tuple[str, int], Mapping[str, Any]], arm: str, name: str) -> TableCell:
    values = {seed: line.get(name) for (other, seed), line in lines.items() if other == arm}
    return make_number_cell(summarize(values).mean, show_value)


def read_training_figures(ledger: Ledger, run: str) -> dict[str, Any]:
    """Return the figures of one run on training examples, if it has any."""
    lines = ledger.lines(run, KIND)
    return _select_figures(lines[-1]) if lines else {}


def _select_figures(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in NO_FIGURES and is_number(value)}
