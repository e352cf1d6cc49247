"""Runs of a study with a search: trials first, then runs with the values that they chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.plan.planner import NO_TRIAL, Planner
from attnlab.studies.plan.search import WORST
from attnlab.studies.study import Study

from ..samples import content
from ..searches import RATES, TUNE, search_study, searched
from .test_planning import SECOND


def make_planner(**changes: object) -> Planner:
    """Return the planner of a study with a search."""
    return Planner(search_study(**changes).design)


def test_trials_come_first_on_data_and_seeds_of_their_own() -> None:
    planner = make_planner()
    trials = planner.list_runs({})
    assert len(trials) == planner.num_trials == 2 * 2 * len(RATES)
    assert planner.count_runs() == 4
    assert all(run.is_trial and run.run.data.dev == TUNE and run.seed not in (1, 2) for run in trials)
    assert {run.run.optimizer.lr for run in trials} == set(RATES)
    # Arms of one seed share the seeds of their trials, so that they are paired.
    by_arm = [{run.seed for run in trials if run.arm == arm} for arm in ("dot", "cosine")]
    assert by_arm[0] == by_arm[1]
    assert len(by_arm[0]) == 2


def test_a_run_gets_what_its_own_trials_chose() -> None:
    planner = make_planner()
    trials = planner.list_runs({})
    scores = {run.id: -run.run.optimizer.lr if run.arm == "dot" else run.run.optimizer.lr for run in trials}
    some = {run.id: scores[run.id] for run in trials if run.arm == "dot" and run.trial and run.trial.seed == 1}
    assert [run.title for run in planner.list_runs(some) if not run.is_trial] == ["recall, tiny, dot, seed 1"]
    runs = [run for run in planner.list_runs(scores) if not run.is_trial]
    assert {(run.arm, run.run.optimizer.lr) for run in runs} == {("dot", RATES[0]), ("cosine", RATES[1])}
    assert all(run.run.data.tune is None and run.run.data.dev != TUNE for run in runs)
    failed = [run for run in planner.list_runs(dict.fromkeys(scores, WORST)) if not run.is_trial]
    assert {run.obstacle for run in failed} == {NO_TRIAL}


def test_more_seeds_leave_the_trials_of_the_others_as_they_are() -> None:
    few = {run.id for run in make_planner().list_runs({})}
    many = {run.id for run in Planner(Study.of({**searched(), "seeds": [1, 2, 3]}).design).list_runs({})}
    assert few < many


def test_tuning_once_has_the_trials_of_one_seed() -> None:
    planner = make_planner(repeat="once", seeds_per_trial=3)
    assert len(planner.list_runs({})) == planner.num_trials == 2 * len(RATES) * 3


def test_a_later_phase_is_searched_from_the_chosen_runs_of_the_first() -> None:
    plain = searched(over={"phases.fine.optimizer.lr": RATES})
    planner = Planner(Study.of({**plain, "phases": [*plain["phases"], SECOND]}).design)
    runs = planner.list_runs({})
    parents = {run.id for run in runs if run.phase == "recall"}
    trials = [run for run in runs if run.is_trial]
    assert len(parents) == 4
    assert {run.phase for run in trials} == {"fine"}
    assert {run.parent for run in trials} == parents
    assert not [run for run in runs if run.phase == "fine" and not run.is_trial]


def test_tuning_data_is_needed_and_not_that_of_the_verdict(tmp_path: Path) -> None:
    plain = searched()
    del plain["data"]["recall"]["tune"]
    with pytest.raises(StudyError, match=r"give \[data.recall\] tune = SOURCE, or num_tune = N"):
        Planner(Study.of(plain).design)
    with pytest.raises(StudyError, match=r"give \[data.recall\] tune = SOURCE, or num_tune = N"):
        Study.of(plain).register(tmp_path / "registered")
    assert not (tmp_path / "registered").exists()
    plain["data"]["recall"]["tune"] = plain["data"]["recall"]["dev"]
    with pytest.raises(StudyError, match="tune has the content of dev"):
        Planner(Study.of(plain).design)
    del plain["data"]["recall"]["tune"]
    plain["data"]["recall"]["num_tune"] = 10
    trials = Planner(Study.of(plain).design).list_runs({})
    assert {(run.run.data.num_tune, run.run.data.dev) for run in trials} == {(10, None)}


def test_without_a_search_all_runs_are_planned_at_once() -> None:
    planner = Planner(Study.of(content()).design)
    assert len(planner.list_runs({})) == len(planner.list_runs(None)) == planner.count_runs() == 6
    assert planner.num_trials == 0
