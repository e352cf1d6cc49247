"""Scores of trials, and the runs that a study with a search has planned so far."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.ledger.database import Ledger, ResultRow
from attnlab.studies.plan.search import WORST
from attnlab.studies.run.trials import list_planned_runs, note_planned, score_result
from attnlab.studies.study import Study

from ..samples import study


def make_row(status: str, primary: str, value: Any) -> ResultRow:
    """Return the result of a run with one figure."""
    return ResultRow("id", status, {"last": {"primary": primary, "figures": {primary: value}}})


@pytest.mark.parametrize(
    ("row", "score"),
    [
        (make_row("finished", "accuracy", 0.5), 0.5),
        (make_row("stopped early", "perplexity", 12.0), -12.0),
        (make_row("diverged", "accuracy", 0.9), WORST),
        (make_row("finished", "perplexity", "Infinity"), WORST),
        (ResultRow("id", "finished", {"last": None}), WORST),
    ],
)
def test_higher_scores_are_better_and_none_is_the_worst(row: ResultRow, score: float) -> None:
    assert score_result(row) == score
    assert not math.isnan(score_result(row))


def test_a_plan_remembers_its_runs_once_each(tmp_path: Path) -> None:
    planned = Study.plan(study())
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        note_planned(ledger, "a", planned[:2])
        note_planned(ledger, "b", planned[2:3])
        note_planned(ledger, "a", planned[:3])
        note_planned(ledger, "a", planned[:3])
        assert list_planned_runs(ledger, "a") == [run.id for run in planned[:3]]
        assert list_planned_runs(ledger, "b") == [planned[2].id]
        assert len(ledger.events("planned")) == 3
