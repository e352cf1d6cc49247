"""The cost of a study as it is printed: runs, costs by arm, and totals."""

import pytest

from attnlab.cli.costs import print_estimate
from attnlab.studies.cost.estimate import CostEstimate, RunCost
from attnlab.studies.study import Study

from ..studies.samples import content


def test_runs_that_have_ended_are_marked_and_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Study.of(content(seeds=[1])).plan()
    costs = tuple(RunCost(run.phase, run.size, run.arm, 1, 1) for run in runs)
    print_estimate(CostEstimate("counted", costs, frozenset(run.id for run in runs), 1, None), runs)
    shown = capsys.readouterr().out
    assert shown.count("ended\n") == len(runs) + 1
    assert f"{len(runs)} runs, of which {len(runs)} have ended\nno runs are left\n" in shown


def test_unknown_costs_are_dashes_and_notes_are_below(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Study.of(content(seeds=[1])).plan()[:1]
    cost = RunCost(runs[0].phase, runs[0].size, runs[0].arm, 1, 0)
    print_estimate(CostEstimate("counted", (cost,), frozenset(), 2, 90.0, ("nothing was timed",)), runs)
    shown = capsys.readouterr().out
    assert "1 of 1" in shown
    assert "with 2 workers" in shown
    assert shown.endswith("  nothing was timed\n")
