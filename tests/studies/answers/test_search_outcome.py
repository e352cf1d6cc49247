"""A study with a search, run to its end: what was tried, what was chosen, and the words of its verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.charts.theme import FILE
from attnlab.reports.study.contents import collect_contents
from attnlab.reports.study.figures import SEARCH
from attnlab.statistics import compare
from attnlab.studies.answers.search_outcome import AT_EDGE, SearchOutcome
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.plan.planner import Planner
from attnlab.studies.run.execution import Execution

from ..samples import quiet
from ..searches import ARMS, RATES, search_study, searched


def test_a_study_with_a_search_ends_where_one_that_was_stopped_ends(
    tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = search_study()
    conclusion = made.run(tmp_path / "whole", say=quiet)
    assert conclusion.is_whole
    assert (conclusion.num_ended, conclusion.num_runs) == (4, 4)
    with open_record(tmp_path / "whole") as record:
        assert [run.title for run in record.runs] == [
            f"recall, tiny, {arm}, seed {seed}" for arm in ("dot", "cosine") for seed in (1, 2)
        ]
        outcome = record.search_outcome("recall", "tiny")
        assert outcome.num_trials == len(RATES)
        assert outcome.settings == ["optimizer.lr"]
        assert {run.run.optimizer.lr for run in record.runs} <= set(RATES)
        for run in record.runs:
            own = [one for one in record.trials if (one.arm, one.trial and one.trial.seed) == (run.arm, run.seed)]
            lasts = {one.run.optimizer.lr: record.results[one.id].result["last"] for one in own}
            figures = {rate: last["figures"]["accuracy"] for rate, last in lasts.items()}
            assert figures[run.run.optimizer.lr] == max(figures.values())
        curve = outcome.draw_curve("dot", "optimizer.lr", record.results)
        assert [point.value for point in curve] == RATES
        assert sum(point.num_chosen for point in curve) == 2
        assert all(point.num_trials == 2 and point.mean is not None for point in curve)
        charts = [figure for figure in collect_contents(record).figures if figure.kind == SEARCH]
        assert [chart.title for chart in charts] == ["What the search tried: optimizer.lr, recall, tiny"]
        drawn = charts[0].draw(FILE)["layer"][1]["data"]["values"]
        assert {(row["arm"], row["tried"]) for row in drawn} == {(arm, rate) for arm in ARMS for rate in RATES}
        limits = collect_contents(record).limits
        assert any(limit.startswith("Only optimizer.lr was tuned for each arm") for limit in limits)
        assert not any("none was tuned" in limit for limit in limits)
        whole = {id: row.result["last"]["figures"] for id, row in record.results.items()}

    # With another grid in the same folder, trials that are no longer in it do not count.
    longer = search_study(over={"optimizer.lr": [*RATES[1:], 3e-2, 0.1]}).run(tmp_path / "whole", say=quiet)
    assert longer.is_whole
    with open_record(tmp_path / "whole") as record:
        assert len(record.runs) == 4
        assert record.search_outcome("recall", "tiny").num_trials == 3

    # Stopped after five runs, and started again.
    find_ready = Execution._find_ready

    def stop_after_five(self: Execution) -> object:
        return [] if len(self.statuses) >= 5 else find_ready(self)

    with monkeypatch.context() as patch:
        patch.setattr(Execution, "_find_ready", stop_after_five)
        assert not made.run(tmp_path / "stopped", say=quiet).is_whole
    assert made.run(tmp_path / "stopped", say=quiet).is_whole
    with open_record(tmp_path / "stopped") as record:
        assert {id: row.result["last"]["figures"] for id, row in record.results.items()} == whole
        assert not [finding for finding in record.findings if finding.is_fault]


def test_a_baseline_at_the_edge_of_its_grid_is_said() -> None:
    plain = searched(over={"optimizer.lr": [1e-4, 1e-3, 1e-2]})
    planner = Planner(search_study(**plain["search"]).design)
    trials = planner.list_runs({})
    best = {"dot": 1e-2, "cosine": 1e-3}
    scores = {run.id: -abs(run.run.optimizer.lr - best[run.arm]) for run in trials}
    runs = [run for run in planner.list_runs(scores) if not run.is_trial]
    outcome = SearchOutcome.select("recall", "tiny", trials, runs)
    assert outcome.describe("dot") == f"AS TUNED (3 trials), {AT_EDGE}"
    assert outcome.describe("cosine") == "AS TUNED (3 trials)"
    notes = list(outcome.list_notes(("dot", "cosine")))
    assert notes[0] == "chosen for dot: optimizer.lr 0.01 (2 of 2)"
    assert "the best optimizer.lr of dot is the largest that was tried" in notes[1]
    assert notes[2:] == ["chosen for cosine: optimizer.lr 0.001 (2 of 2)"]
    assert SearchOutcome.select("recall", "other", trials, runs).describe("dot") == ""
    # A run that no trial could tune has chosen nothing.
    barred = [replace(run, obstacle="no trial") for run in runs]
    assert SearchOutcome(trials, barred).list_edges("dot") == []


def test_one_choice_for_all_seeds_is_said_to_be_one() -> None:
    planner = Planner(search_study(repeat="once").design)
    trials = planner.list_runs({})
    runs = [run for run in planner.list_runs({run.id: run.run.optimizer.lr for run in trials}) if not run.is_trial]
    notes = list(SearchOutcome.select("recall", "tiny", trials, runs).list_notes(("dot",)))
    assert notes[0] == "chosen for dot: optimizer.lr 0.01 (for all seeds)"


def test_the_condition_stands_with_a_difference_only() -> None:
    low, high = [0.0, 0.1, 0.2, 0.1, 0.0], [5.0, 5.1, 5.3, 5.1, 5.2]
    words = "AS TUNED (3 trials)"
    assert compare(low, high, smallest=1, condition=words).verdict == f"BETTER BY AT LEAST 1 {words}"
    assert compare(high, low, smallest=10, condition=words).verdict == f"WORSE {words}, BELOW YOUR THRESHOLD"
    still = compare(low, high, smallest=1, condition=words, late_gain=3.0)
    assert still.verdict == f"STILL TRAINING, BETTER BY AT LEAST 1 {words} SO FAR"
    assert words not in compare(low, [0.1, 0.0, 0.1, 0.2, 0.1], smallest=1, condition=words).verdict
