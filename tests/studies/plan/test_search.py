"""Which values a search tries, and which it chooses."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.studies.answers.search_outcome import SearchOutcome
from attnlab.studies.file.design import SearchSettings
from attnlab.studies.plan.planner import Planner
from attnlab.studies.plan.search import (
    WORST,
    ArmSearch,
    Trial,
    count_trials,
    derive_seed,
    extend_grid,
    find_edges,
    list_points,
    list_shares,
    search_together,
)

from ..searches import search_study

LR = "optimizer.lr"


def make_search(values: list[Any], best: float, **settings: Any) -> tuple[ArmSearch, dict[str, float]]:
    """Return a search over rates, whose trials score −|rate − best|, and their scores, filled when one is asked for."""
    scores: dict[str, float] = {}

    def find_runs(trial: Trial) -> list[SimpleNamespace]:
        id = f"{trial.values[LR]} {trial.share}"
        scores[id] = -abs(trial.values[LR] - best)
        return [SimpleNamespace(id=id)]

    return ArmSearch({LR: values}, SearchSettings(over={LR: values}, **settings), 1, find_runs), scores


def test_the_best_value_is_chosen_once_all_trials_have_ended() -> None:
    search, scores = make_search([1.0, 2.0, 4.0], 2.2)
    assert search.list_trials({})[1] is None
    assert search.list_trials(scores)[1] == {LR: 2.0}


def test_trials_without_a_score_are_the_worst_and_without_any_nothing_is_chosen() -> None:
    search, scores = make_search([1.0, 2.0], 1.0)
    search.list_trials(scores)
    assert search.list_trials({**scores, "1.0 1": WORST})[1] == {LR: 2.0}
    assert search.list_trials(dict.fromkeys(scores, WORST))[1] == {}


@pytest.mark.parametrize(
    ("values", "chosen"),
    [([1.0, 2.0, 4.0], 2.0), ([4.0, 1.0, 2.0], 2.0), ([1.0, 2.0], 1.0), (["adam", "sgd", "muon"], "sgd")],
)
def test_of_equal_values_the_one_in_the_middle_is_chosen(values: list[Any], chosen: Any) -> None:
    search = ArmSearch({LR: values}, SearchSettings(over={LR: values}), 1, lambda _: [SimpleNamespace(id="any")])
    assert search.list_trials({"any": 1.0})[1] == {LR: chosen}


def test_halving_finds_the_best_of_nine_for_two_ninths_of_the_steps() -> None:
    values = [float(value) for value in range(1, 10)]
    search, scores = make_search(values, 7.0, halve=True)
    trials, chosen = search.list_trials(scores)
    assert chosen == {LR: 7.0}
    assert [trial.share for trial in trials] == [Fraction(1, 9)] * 9 + [Fraction(1, 3)] * 3
    assert sum(trial.share for trial in trials) == 2  # runs, instead of nine
    assert count_trials(search.search, search.grid) == 12


@pytest.mark.parametrize(("num", "shares"), [(1, ["1/3"]), (3, ["1/3"]), (4, ["1/9", "1/3"]), (9, ["1/9", "1/3"])])
def test_rungs_of_halving(num: int, shares: list[str]) -> None:
    assert list_shares(num) == [Fraction(share) for share in shares]


def test_a_part_of_the_grid_is_the_same_for_all_arms_of_a_seed() -> None:
    grids: list[Mapping[str, list[Any]]] = [{LR: [1, 2, 3, 4, 5]}, {LR: [10, 20, 30, 40, 50]}]
    ours, theirs = ([point[LR] for point in list_points(grid, 2, 7)] for grid in grids)
    assert [10 * value for value in ours] == theirs
    assert len({tuple(list_points(grids[0], 2, seed)[0].values()) for seed in range(20)}) > 1
    assert [point[LR] for point in list_points(grids[0], None, 7)] == [1, 2, 3, 4, 5]


def test_a_grid_goes_on_for_all_arms_until_the_best_is_inside() -> None:
    scores: dict[str, float] = {}
    searches = {}
    for arm, best in (("dot", 2.0), ("cosine", 8.0)):

        def find_runs(trial: Trial, arm: str = arm, best: float = best) -> list[SimpleNamespace]:
            scores[f"{arm} {trial.values[LR]}"] = -abs(trial.values[LR] - best)
            return [SimpleNamespace(id=f"{arm} {trial.values[LR]}")]

        values = [1.0, 2.0, 4.0]
        searches[arm] = ArmSearch({LR: values}, SearchSettings(over={LR: values}, extend=True), 1, find_runs)
    found = {arm: (len(trials), chosen) for arm, trials, chosen in search_together(searches, scores)}
    assert found == {"dot": (5, {LR: 2.0}), "cosine": (5, {LR: 8.0})}


def test_no_arm_has_a_choice_while_another_may_extend_its_grid() -> None:
    searches, scores = dict[str, ArmSearch](), dict[str, float]()
    for arm, best in (("dot", 2.0), ("cosine", 4.0)):
        searches[arm], known = make_search([1.0, 2.0, 4.0], best, extend=True)
        searches[arm].list_trials({})  # names its runs
        scores |= {f"{arm} {id}": score for id, score in known.items()}
        find_runs = searches[arm].find_runs
        searches[arm].find_runs = lambda trial, arm=arm, find=find_runs: [  # type: ignore[misc]
            SimpleNamespace(id=f"{arm} {run.id}") for run in find(trial)
        ]
    half = {id: score for id, score in scores.items() if id.startswith("dot")}
    assert [values for *_, values in search_together(searches, half)] == [None, None]
    # All trials have ended, the best of cosine is at the edge, and the grid of dot goes on as well.
    assert [(len(trials), values) for _, trials, values in search_together(searches, scores)] == [(4, None), (4, None)]


def test_edges_and_what_lies_beyond() -> None:
    assert find_edges({LR: 1e-3}, {LR: [1e-3, 1e-2]}) == [(LR, -1)]
    assert find_edges({LR: 2}, {LR: [1, 2, 3]}) == []
    assert find_edges({"name": "sgd"}, {"name": ["adam", "sgd"]}) == []
    assert extend_grid({LR: [1e-3, 1e-2]}, LR, 1) == {LR: [1e-3, 1e-2, 0.1]}
    assert extend_grid({LR: [3e-4, 1e-3]}, LR, -1) == {LR: [3e-4, 1e-3, 9e-5]}
    assert extend_grid({"rank": [1, 2]}, "rank", -1) == {"rank": [1, 2]}


def test_seeds_of_trials_are_none_of_the_studys() -> None:
    first = derive_seed(1, 0, [])
    assert derive_seed(1, 0, [first]) not in (first, derive_seed(1, 1, []), derive_seed(2, 0, []))
    assert first == derive_seed(1, 0, [5, 6])


def test_lists_can_be_tried() -> None:
    planner = Planner(search_study(over={"optimizer.betas": [[0.9, 0.95], [0.9, 0.999]]}).design)
    trials = planner.list_runs({})
    assert {run.run.optimizer.betas for run in trials} == {(0.9, 0.95), (0.9, 0.999)}
    scores = {run.id: run.run.optimizer.betas[1] for run in trials}
    runs = [run for run in planner.list_runs(scores) if not run.is_trial]
    assert {run.run.optimizer.betas for run in runs} == {(0.9, 0.999)}
    outcome = SearchOutcome.select("recall", "tiny", trials, runs)
    assert outcome.describe("dot") == "AS TUNED (2 trials)"
    assert [point.num_chosen for point in outcome.draw_curve("dot", "optimizer.betas", {})] == [0, 2]


def test_a_trial_is_stored_and_read() -> None:
    trial = Trial({LR: 1e-3}, None, Fraction(1, 9))
    assert Trial.of(trial.record()) == trial
    assert trial.title == "lr 0.001, 1/9 of the steps"
